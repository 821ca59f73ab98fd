// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/printable.h"

#include <fmt/format.h>

namespace accrue {

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F: the same control codes as one character
      shown += fmt::format("\\x{:02x}", next);
      ++i;
    } else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += static_cast<char>(byte);
    }
  }
  return shown;
}

}  // namespace accrue
