// SPDX-License-Identifier: Apache-2.0
// Case folding for names that may be spelled in either case.
#pragma once

#include <string>
#include <string_view>

namespace accrue {

/// Lower-cases A to Z.
inline std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& each : result)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  return result;
}

}  // namespace accrue
