// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/base/number_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace accrue {

std::string number_text_detail::format_bytes(double bytes) {
  if (bytes < 1024.0) return fmt::format("{:.0f} B", bytes);
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB"};
  constexpr double rounds_up = 1023.95;  // would be printed as 1024.0
  std::size_t unit = 0;
  for (bytes /= 1024.0; bytes >= rounds_up && unit + 1 < std::size(units); ++unit) bytes /= 1024.0;
  return fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string grouped(std::string_view number, std::string_view separator) {
  const std::size_t begin = number.starts_with('-') ? 1 : 0;
  std::string text(number);
  for (std::size_t at = std::min(number.find('.'), number.size()); at > begin + 3;) text.insert(at -= 3, separator);
  return text;
}

}  // namespace accrue
