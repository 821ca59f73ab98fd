// SPDX-License-Identifier: Apache-2.0
// NumPy's RandomState, draw for draw: the indices of Megatron-LM's data sets are shuffled with it, and to get the
// same samples in the same order, the same numbers are needed. For anything else use mix64.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace accrue {

class RandomState {
 public:
  explicit RandomState(std::uint32_t seed) : mt_(seed) {}

  /// [0, 1) with 53 bits of two draws.
  double random() {
    const std::uint64_t high = next() >> 5, low = next() >> 6;
    return static_cast<double>((high << 26) + low) * 0x1.0p-53;
  }
  /// low, ..., high - 1. A range of one value draws nothing. Needs low < high.
  std::int64_t randint(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(at_most(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1));
  }
  /// The trial of the first success, from 1; each has this probability, below 1/3, where NumPy inverts the
  /// distribution.
  std::int64_t geometric(double probability) {
    return static_cast<std::int64_t>(std::ceil(std::log1p(-random()) / std::log1p(-probability)));
  }
  /// Fisher and Yates, from the end.
  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[at_most(i)]);
  }

 private:
  std::uint64_t next() { return mt_(); }
  /// 0, ..., most, all equally likely: bits under the smallest mask that holds most, until they are in the range.
  std::uint64_t at_most(std::uint64_t most) {
    if (most == 0) return 0;
    std::uint64_t mask = most;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    const auto draw = [&] { return most <= 0xffffffffU ? next() & mask : ((next() << 32) | next()) & mask; };
    std::uint64_t value = draw();
    while (value > most) value = draw();
    return value;
  }

  std::mt19937 mt_;
};

}  // namespace accrue
