// SPDX-License-Identifier: Apache-2.0
// Optimizer updates in one pass over memory: for n elements AdamW reads and writes 7 n numbers, the least possible.
// Source of the formulas: PyTorch's documentation of AdamW and SGD.
#pragma once

#include <cmath>

#include "kernels/kernels.h"

namespace accrue {
namespace {

template <typename T>
void adamw_update(T* __restrict params, const T* __restrict grads, T* __restrict first, T* __restrict second,
                  std::int64_t n, const AdamWStep& step) {
  const T scale = static_cast<T>(step.grad_scale), keep = static_cast<T>(1.0 - step.lr * step.weight_decay);
  const T take1 = static_cast<T>(1.0 - step.beta1), beta2 = static_cast<T>(step.beta2);
  const T take2 = static_cast<T>(1.0 - step.beta2), eps = static_cast<T>(step.eps);
  const T l2 = static_cast<T>(step.l2);
  const T size = static_cast<T>(step.lr / step.correction1), root = static_cast<T>(step.correction2_root);
  for (std::int64_t i = 0; i < n; ++i) {
    const T grad = grads[i] * scale + l2 * params[i];
    const T m = first[i] + (grad - first[i]) * take1;
    const T v = beta2 * second[i] + take2 * grad * grad;
    first[i] = m;
    second[i] = v;
    params[i] = params[i] * keep - size * (m / (std::sqrt(v) / root + eps));
  }
}

template <typename T>
void sgd_update(T* __restrict params, const T* __restrict grads, T* __restrict buffer, std::int64_t n,
                const SgdStep& step) {
  const T scale = static_cast<T>(step.grad_scale), decay = static_cast<T>(step.weight_decay);
  const T momentum = static_cast<T>(step.momentum), lr = static_cast<T>(step.lr);
  if (buffer == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) params[i] -= lr * (grads[i] * scale + decay * params[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const T velocity = momentum * buffer[i] + (grads[i] * scale + decay * params[i]);
    buffer[i] = velocity;
    params[i] -= lr * velocity;
  }
}

template <typename T>
double square_sum(const T* values, std::int64_t n) {
  constexpr std::int64_t lanes = 16;  // independent sums: a fixed order of additions on every machine
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
