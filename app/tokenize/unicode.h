// SPDX-License-Identifier: Apache-2.0
// Texts in UTF-16, as ICU reads them, and the classes of characters that tokenizers ask for.
#pragma once

#include <unicode/uchar.h>
#include <unicode/utf16.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace accrue::tokenize {

using Text = std::u16string;

/// Decodes UTF-8; invalid bytes become U+FFFD.
Text to_utf16(std::string_view text);
std::string to_utf8(std::u16string_view text);
void append_utf8(std::string& text, UChar32 point);
inline void append_utf16(Text& text, UChar32 point) {
  if (point > 0xFFFF) text.push_back(U16_LEAD(point));
  text.push_back(point > 0xFFFF ? U16_TRAIL(point) : static_cast<char16_t>(point));
}

/// Calls see(code point, begin, end) for each code point of a text.
template <typename See>
void each_point(std::u16string_view text, See see) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    UChar32 point = 0;
    U16_NEXT(text.data(), at, text.size(), point);
    see(point, begin, at);
  }
}

inline bool is_space(UChar32 point) {
  return u_isUWhiteSpace(point) != 0;
}
inline bool is_number(UChar32 point) {
  return (U_GET_GC_MASK(point) & U_GC_N_MASK) != 0;
}
/// Whether a character has one of these categories in this version of Unicode. Hugging Face's library has tables of its
/// own for some steps, which its published tokenizers were trained with.
bool has_category(UChar32 point, std::uint32_t mask, std::uint8_t version);
/// Of BERT, by Unicode 8, and all ASCII characters that are neither letters, digits, space nor control characters.
bool is_punctuation(UChar32 point);

}  // namespace accrue::tokenize
