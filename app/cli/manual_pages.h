// SPDX-License-Identifier: Apache-2.0
// The pages of resources/manual, compiled in; the source is written when the tree is configured.
#pragma once

#include <span>
#include <string_view>

namespace accrue::cli {

struct ManualPage {
  std::string_view topic;  ///< "layouts"
  std::string_view text;   ///< Markdown
};
/// In the order of contents.txt.
std::span<const ManualPage> manual_pages();

}  // namespace accrue::cli
