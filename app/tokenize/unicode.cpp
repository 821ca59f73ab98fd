// SPDX-License-Identifier: Apache-2.0
#include "unicode.h"

#include <unicode/unorm2.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <limits>

namespace accrue::tokenize {
namespace {

constexpr UChar32 replacement = 0xFFFD;

/// Calls see(point, first byte) for each code point; a negative point is not a code point.
template <typename See>
void walk(std::string_view text, See see) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    UChar32 point = 0;
    U8_NEXT(bytes, at, text.size(), point);
    if (!see(point, begin)) return;
  }
}

}  // namespace

CodePoints code_points(std::string_view text) {
  CodePoints points;
  points.reserve(text.size());
  walk(text, [&](UChar32 point, std::size_t) {
    points.push_back(point < 0 ? replacement : point);
    return true;
  });
  return points;
}

void append_utf8(std::string& text, UChar32 point) {
  std::uint8_t bytes[4];
  std::int32_t count = 0;
  U8_APPEND_UNSAFE(bytes, count, point);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

CodePoints decomposed(const CodePoints& points) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* form = unorm2_getNFDInstance(&error);
  if (U_FAILURE(error)) return points;
  CodePoints result;
  result.reserve(points.size());
  for (const UChar32 point : points) {
    UChar units[32];
    error = U_ZERO_ERROR;
    const std::int32_t count = unorm2_getDecomposition(form, point, units, std::size(units), &error);
    if (count < 0 || U_FAILURE(error)) {
      result.push_back(point);
      continue;
    }
    for (std::int32_t at = 0; at < count;) {
      UChar32 part = 0;
      U16_NEXT(units, at, count, part);
      result.push_back(part);
    }
  }
  // Marks after a base are ordered by their classes.
  for (auto at = result.begin(); at != result.end();) {
    if (u_getCombiningClass(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, result.end(), [](UChar32 point) { return u_getCombiningClass(point) == 0; });
    std::stable_sort(at, end, [](UChar32 a, UChar32 b) { return u_getCombiningClass(a) < u_getCombiningClass(b); });
    at = end;
  }
  return result;
}

}  // namespace accrue::tokenize
