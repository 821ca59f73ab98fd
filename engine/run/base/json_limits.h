// SPDX-License-Identifier: Apache-2.0
// Bounds that are checked on the bytes, before a JSON parser builds anything from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace accrue {

inline constexpr int max_json_depth = 64;
/// Largest whole number that a record may hold, in either direction: sums and differences of two cannot overflow.
inline constexpr std::int64_t max_json_integer = (std::int64_t{1} << 62) - 1;

/// Nesting of brackets outside strings; stops counting at limit + 1, so hostile input costs one pass at most.
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
