// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace accrue {

/// Adds numbers in NumPy's order, so that weights divided by the sum are equal to the last bit: eight partial sums in
/// blocks of at most 128 numbers, and halves of longer rows.
inline double numpy_sum(std::span<const double> values) {
  const std::size_t count = values.size();
  if (count > 128) {
    const std::size_t half = count / 2 - count / 2 % 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double sum = 0;
  std::size_t done = 0;
  if (count >= 8) {
    double part[8];
    for (std::size_t i = 0; i < 8; ++i) part[i] = values[i];
    for (done = 8; done + 8 <= count; done += 8)
      for (std::size_t i = 0; i < 8; ++i) part[i] += values[done + i];
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; done < count; ++done) sum += values[done];
  return sum;
}

}  // namespace accrue
