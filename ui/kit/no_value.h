// SPDX-License-Identifier: GPL-3.0-or-later
// In place of a number where nothing was measured, as the loss of a window without a label: a NaN of its own, so that a
// plot has a gap there and no mark, and a file an empty cell.
#pragma once

#include <bit>
#include <cstdint>

namespace accrue::ui {

inline constexpr double noValue = std::bit_cast<double>(std::uint64_t{0x7ff8'0000'0000'0a11});

/// False for noValue; true for every number, and for a NaN that was measured.
constexpr bool isMeasured(double value) {
  return std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(noValue);
}

}  // namespace accrue::ui
