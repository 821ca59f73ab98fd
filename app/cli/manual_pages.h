// SPDX-License-Identifier: Apache-2.0
// Pages of resources/manual, compiled in; configuring the tree writes the source.
#pragma once

#include <span>
#include <string_view>

namespace accrue::cli {

struct ManualPage {
  std::string_view topic;  ///< "layouts"
  std::string_view text;   ///< Markdown
};
/// Returns the pages in the order of contents.txt.
std::span<const ManualPage> manual_pages();

}  // namespace accrue::cli
