// SPDX-License-Identifier: Apache-2.0
// Bounds that are checked on the bytes, before a JSON parser builds anything from them.
#pragma once

#include <cstddef>
#include <string_view>

namespace accrue {

inline constexpr int max_json_depth = 64;

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
