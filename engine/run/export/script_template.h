// SPDX-License-Identifier: Apache-2.0
// The templates of resources/export, which are Python as they stand. A line "# %%" begins a block that is always in a
// script, a line "# %% NAME NAME" one that is in it where one of the names is set. What stands above the first such
// line is for the template's readers. _NAME_ stands for a value.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace accrue::export_detail {

/// What a script has in place of the names of the templates.
struct ScriptText {
  std::set<std::string, std::less<>> blocks;
  std::map<std::string, std::string, std::less<>> values;  ///< without the underscores
};

/// The template ("order" for order.py) with its blocks and values. A value is not searched for names in turn.
std::string rendered(std::string_view name, const ScriptText& text);

}  // namespace accrue::export_detail
