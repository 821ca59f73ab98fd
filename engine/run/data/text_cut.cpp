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

/// Whether the last character is surely a letter or a digit.
bool ends_in_letter(std::string_view text) {
  const std::uint32_t point = last_point(text);
  if (point < 0x80) return std::isalnum(static_cast<int>(point)) != 0;
  constexpr std::pair<std::uint32_t, std::uint32_t> letters[] = {{0xC0, 0xD6},     {0xD8, 0xF6},     {0xF8, 0x24F},
                                                                 {0x391, 0x3CE},   {0x400, 0x481},   {0x3041, 0x3096},
                                                                 {0x30A1, 0x30FA}, {0x4E00, 0x9FA5}, {0xAC00, 0xD7A3}};
  return std::ranges::any_of(letters, [=](const auto& block) { return point >= block.first && point <= block.second; });
}

}  // namespace

std::size_t cut_before_space(std::string_view text) {
  std::size_t before_space = 0, found = 0;
  for (std::size_t at = text.size(); at-- > 1;) {
    if (!is_ascii_space(text[at]) || ends_in_space(text.substr(0, at))) continue;
    if (found == 0) found = at;
    if (before_space == 0 && text[at] == ' ') before_space = at;
    if (at < text.size() / 2 && before_space > 0) break;
    if ((text[at] == '\n' || text[at] == '\r') && ends_in_letter(text.substr(0, at))) return at;
  }
  return before_space > 0 ? before_space : found;
}

}  // namespace accrue
