// SPDX-License-Identifier: Apache-2.0
#include "text_cut.h"

#include <algorithm>

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

}  // namespace

std::size_t cut_before_space(std::string_view text) {
  std::size_t found = 0;
  for (std::size_t at = text.size(); at-- > 1;) {
    if (!is_ascii_space(text[at]) || ends_in_space(text.substr(0, at))) continue;
    if (found == 0) found = at;
    if (at < text.size() / 2) break;
    if (text[at] == '\n' || text[at] == '\r') return at;
  }
  return found;
}

}  // namespace accrue
