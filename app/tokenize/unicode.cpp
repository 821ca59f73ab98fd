// SPDX-License-Identifier: Apache-2.0
#include "unicode.h"

#include <unicode/utf8.h>

namespace accrue::tokenize {

Text to_utf16(std::string_view text) {
  constexpr UChar32 replacement = 0xFFFD;
  Text wide;
  wide.reserve(text.size());
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    UChar32 point = 0;
    U8_NEXT_OR_FFFD(bytes, at, text.size(), point);
    append_utf16(wide, point < 0 ? replacement : point);
  }
  return wide;
}

void append_utf8(std::string& text, UChar32 point) {
  std::uint8_t bytes[4];
  std::int32_t count = 0;
  U8_APPEND_UNSAFE(bytes, count, point);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

std::string to_utf8(std::u16string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  each_point(text, [&](UChar32 point, std::size_t, std::size_t) { append_utf8(bytes, point); });
  return bytes;
}

bool has_category(UChar32 point, std::uint32_t mask, std::uint8_t version) {
  if ((U_GET_GC_MASK(point) & mask) == 0) return false;
  UVersionInfo since{};
  u_charAge(point, since);
  return since[0] <= version;
}

bool is_punctuation(UChar32 point) {
  if ((point >= 33 && point <= 47) || (point >= 58 && point <= 64) || (point >= 91 && point <= 96) ||
      (point >= 123 && point <= 126))
    return true;
  return has_category(point, U_GC_P_MASK, 8);
}

}  // namespace accrue::tokenize
