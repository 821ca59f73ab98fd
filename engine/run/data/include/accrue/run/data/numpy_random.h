// SPDX-License-Identifier: Apache-2.0
// NumPy's RandomState, draw for draw. Megatron-LM shuffles the indices of its data sets with it, so equal samples in
// equal order need the same numbers. Use mix64.h for anything else.
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

  /// Returns a number in [0, 1) with 53 bits, from two draws.
  double random() {
    const std::uint64_t high = next() >> 5, low = next() >> 6;
    return static_cast<double>((high << 26) + low) * 0x1.0p-53;
  }
  /// Returns one of low, ..., high - 1. A range of one value draws nothing. Requires low < high.
  std::int64_t randint(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(at_most(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1));
  }
  /// Returns the trial of the first success, from 1. `probability` must be below 1/3, for which NumPy inverts the
  /// distribution.
  std::int64_t geometric(double probability) {
    return static_cast<std::int64_t>(std::ceil(std::log1p(-random()) / std::log1p(-probability)));
  }
  /// Fisher-Yates shuffle, from the end.
  template <typename T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[at_most(i)]);
  }

 private:
  std::uint64_t next() { return mt_(); }
  /// Returns one of 0, ..., most with equal probability: draws bits under the smallest mask that holds `most` until
  /// they are in range.
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
