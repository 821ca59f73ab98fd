// SPDX-License-Identifier: Apache-2.0
// Code points of UTF-8 texts, and their classes for the tokenizers, by ICU.
#pragma once

#include <unicode/uchar.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace accrue::tokenize {

using CodePoints = std::vector<UChar32>;

/// Decodes UTF-8; invalid bytes become U+FFFD.
CodePoints code_points(std::string_view text);
void append_utf8(std::string& text, UChar32 point);
/// Canonical decomposition.
CodePoints decomposed(const CodePoints& points);

inline bool is_letter(UChar32 point) {
  return (U_GET_GC_MASK(point) & U_GC_L_MASK) != 0;
}
inline bool is_number(UChar32 point) {
  return (U_GET_GC_MASK(point) & U_GC_N_MASK) != 0;
}
inline bool is_space(UChar32 point) {
  return u_isUWhiteSpace(point) != 0;
}

}  // namespace accrue::tokenize
