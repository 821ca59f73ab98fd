// SPDX-License-Identifier: Apache-2.0
// Limits that are checked on the raw bytes, before a JSON parser allocates anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace accrue {

inline constexpr int max_json_depth = 64;
/// Largest absolute value of a whole number in a record: sums and differences of two such numbers cannot overflow.
inline constexpr std::int64_t max_json_integer = (std::int64_t{1} << 62) - 1;

/// Counts the nesting of brackets outside strings. Stops at limit + 1, so hostile input costs one pass at most.
inline int json_depth(std::string_view text, int limit = max_json_depth) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > deepest) deepest = depth;
      if (deepest > limit) return deepest;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace accrue
