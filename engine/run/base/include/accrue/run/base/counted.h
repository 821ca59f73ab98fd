// SPDX-License-Identifier: Apache-2.0
// Numbers with the noun that they count, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace accrue {

/// Returns "1 sample" or "2 samples". Only for nouns with a plural in -s.
inline std::string counted(std::int64_t count, std::string_view singular) {
  return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

}  // namespace accrue
