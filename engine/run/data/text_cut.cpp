// SPDX-License-Identifier: Apache-2.0
#include "text_cut.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

namespace accrue {
namespace {

bool is_ascii_space(char each) {
  return each == ' ' || (each >= '\t' && each <= '\r');
}

/// Whether the last character is white space by Unicode's property.
bool ends_in_space(std::string_view text) {
  constexpr std::string_view others[] = {"\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
                                         "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
                                         "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
                                         "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  return !text.empty() && (is_ascii_space(text.back()) || std::ranges::any_of(others, [text](std::string_view space) {
                             return text.ends_with(space);
                           }));
}

/// The last character, as a code point.
std::uint32_t last_point(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  const auto first = static_cast<unsigned char>(text[at]);
  std::uint32_t point = first < 0x80 ? first : first & (0x3FU >> (text.size() - at - 1));
  while (++at < text.size()) point = point << 6 | (static_cast<unsigned char>(text[at]) & 0x3FU);
  return point;
}

/// Whether the last character is a letter or a digit, or in no block of punctuation.
bool ends_in_word(std::string_view text) {
  const std::uint32_t point = last_point(text);
  if (point < 0x80) return std::isalnum(static_cast<int>(point)) != 0;
  constexpr std::pair<std::uint32_t, std::uint32_t> others[] = {{0x80, 0xBF},     {0x2000, 0x2BFF}, {0x3000, 0x303F},
                                                                {0xFE10, 0xFE6F}, {0xFF00, 0xFF0F}, {0xFF1A, 0xFF20},
                                                                {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}};
  return std::ranges::none_of(others, [=](const auto& block) { return point >= block.first && point <= block.second; });
}

}  // namespace

std::size_t cut_before_space(std::string_view text) {
  std::size_t after_word = 0, found = 0;
  for (std::size_t at = text.size(); at-- > 1;) {
    if (!is_ascii_space(text[at]) || ends_in_space(text.substr(0, at))) continue;
    if (found == 0) found = at;
    if (!ends_in_word(text.substr(0, at))) continue;
    if (after_word == 0) after_word = at;
    if (at < text.size() / 2) break;
    if (text[at] == '\n' || text[at] == '\r') return at;
  }
  return after_word > 0 ? after_word : found;
}

}  // namespace accrue
