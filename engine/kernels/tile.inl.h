// SPDX-License-Identifier: Apache-2.0
// A block of a matrix product that stays in registers: rows x columns sums, fed by one broadcast number of A and two
// vectors of B at a time. 6 x 16 floats fill AVX2's sixteen registers and keep both multipliers busy.
#pragma once

#include "kernels/vec.inl.h"

namespace accrue {
namespace {

template <typename T>
struct Tile {
  // AVX-512: 12 x 2 sums, two vectors of B and one number of A are 27 of 32 registers. AVX2: 6 x 2 + 3 of 16. A core
  // begins two multiply-adds per cycle, each of which takes 4 or 5; so it needs 8 to 10 independent sums, and has 12 or
  // 24.
  static constexpr std::int64_t rows = ACCRUE_VECTOR_BYTES == 64 ? 12 : 6;
  static constexpr std::int64_t columns = 2 * lanes<T>;

  Vec<T> sum[rows][2];

  ACCRUE_INLINE void clear() {
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < rows; ++i) sum[i][0] = sum[i][1] = Vec<T>{};
  }

  /// sum[i][:] += a[i * row_stride + p * step] * b[p * b_stride + :] for p in [0, depth), in order of p. So each sum
  /// has one order of additions for any number of threads.
  ACCRUE_INLINE void multiply(std::int64_t depth, const T* a, std::int64_t row_stride, std::int64_t step, const T* b,
                              std::int64_t b_stride) {
    for (std::int64_t p = 0; p < depth; ++p) {
      const Vec<T> b0 = load(b), b1 = load(b + lanes<T>);
#pragma GCC unroll 12
      for (std::int64_t i = 0; i < rows; ++i) {
        const Vec<T> x = splat(a[i * row_stride]);
        sum[i][0] += x * b0;
        sum[i][1] += x * b1;
      }
      a += step;
      b += b_stride;
    }
  }

  ACCRUE_INLINE void store_to(T* to, std::int64_t stride) const {
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < rows; ++i) {
      store(to + i * stride, sum[i][0]);
      store(to + i * stride + lanes<T>, sum[i][1]);
    }
  }
};

/// Least multiple of step that is not below n.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace
}  // namespace accrue
