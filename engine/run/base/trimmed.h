// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace accrue {

/// Removes the white space at both ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(space) - first + 1);
}

}  // namespace accrue
