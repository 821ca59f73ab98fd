// SPDX-License-Identifier: Apache-2.0
// PyTorch's updates in one pass over memory: for n elements AdamW reads and writes 7 n numbers, the least possible.
#pragma once

#include "kernels/element_rules.inl.h"
#include "kernels/kernels.h"

namespace accrue {
namespace {

/// params, grads, first, second [n]: seven streams, four read and three written. __restrict lets the compiler use
/// vectors without a check for overlap: the four are different tensors.
template <typename T>
void adamw_update(T* __restrict params, const T* __restrict grads, T* __restrict first, T* __restrict second,
                  std::int64_t n, const AdamWStep& step) {
  const AdamWRule<T> rule(step);
  for (std::int64_t i = 0; i < n; ++i) rule(params[i], grads[i], first[i], second[i]);
}

/// Applies a rule whose buffer may be null.
template <typename T, typename Rule>
ACCRUE_HOST_DEVICE void buffered_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer,
                                        std::int64_t n, const Rule& rule) {
  if (buffer == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) rule(params[i], grads[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) rule(params[i], grads[i], buffer[i]);
}

template <typename T>
void sgd_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                const SgdStep& step) {
  buffered_update(params, grads, buffer, n, SgdRule<T>(step));
}

/// Sum of x^2 over [n] in double: it cannot overflow for float32, and a norm over many millions of numbers keeps its
/// digits.
template <typename T>
double square_sum(const T* values, std::int64_t n) {
  constexpr std::int64_t lanes = 16;  // independent sums: the same order of additions on every machine
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  }
  for (; i < n; ++i) {
    const double value = static_cast<double>(values[i]);
    sums[0] += value * value;
  }
  double total = 0.0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace
}  // namespace accrue
