// SPDX-License-Identifier: Apache-2.0
// The templates of resources/export, which are valid Python. A line "# %%" begins a block that every script has, a line
// "# %% NAME NAME" a block for scripts in which one of the names is set. Text above the first such line is for readers
// of the template. _NAME_ is replaced by a value.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace accrue::export_detail {

/// Blocks and values of a script, by their names in the templates.
struct ScriptText {
  std::set<std::string, std::less<>> blocks;
  std::map<std::string, std::string, std::less<>> values;  ///< without the underscores
};

/// Returns a template ("order" for order.py) with its blocks and values filled in. Names inside values are not
/// replaced.
std::string rendered(std::string_view name, const ScriptText& text);

}  // namespace accrue::export_detail
