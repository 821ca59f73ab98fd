// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/utf8.h"

namespace accrue {

std::size_t first_not_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  for (std::size_t at = 0; at < text.size();) {
    const unsigned first = byte(at), second = byte(at + 1);
    const auto follows = [&](std::size_t i) { return (byte(at + i) & 0xC0U) == 0x80U; };
    if (first < 0x80) {
      at += 1;
    } else if (first >= 0xC2 && first <= 0xDF && follows(1)) {
      at += 2;
    } else if (first >= 0xE0 && first <= 0xEF && follows(1) && follows(2) && !(first == 0xE0 && second < 0xA0) &&
               !(first == 0xED && second > 0x9F)) {
      at += 3;
    } else if (first >= 0xF0 && first <= 0xF4 && follows(1) && follows(2) && follows(3) &&
               !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F)) {
      at += 4;
    } else {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace accrue
