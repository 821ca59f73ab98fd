// SPDX-License-Identifier: Apache-2.0
// Names that people and other tools spell in either case.
#pragma once

#include <string>
#include <string_view>

namespace accrue {

/// A to Z as a to z.
inline std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& each : result)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  return result;
}

}  // namespace accrue
