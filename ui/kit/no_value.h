// SPDX-License-Identifier: GPL-3.0-or-later
// Placeholder for a missing measurement, such as the loss of a window without a label. It is a NaN of its own: a plot
// shows a gap without a mark, and a file an empty cell.
#pragma once

#include <bit>
#include <cstdint>

namespace accrue::ui {

inline constexpr double noValue = std::bit_cast<double>(std::uint64_t{0x7ff8'0000'0000'0a11});

/// False for noValue; true for every number, and for a measured NaN.
constexpr bool isMeasured(double value) {
  return std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(noValue);
}

}  // namespace accrue::ui
