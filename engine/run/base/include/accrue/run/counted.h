// SPDX-License-Identifier: Apache-2.0
// A number and what it counts, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace accrue {

/// "1 sample", "2 samples"; for words whose plural is an s.
inline std::string counted(std::int64_t count, std::string_view singular) {
  return std::to_string(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

}  // namespace accrue
