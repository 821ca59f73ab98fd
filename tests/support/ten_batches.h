// SPDX-License-Identifier: Apache-2.0
// The ten-batch case: batch b = 1..10 holds one sample x = b, y = 2b; prediction w x; squared error; w starts at 0.
// With d = w - 2 a group of batches multiplies d by 1 - lr * sum(2 x^2) / divisor, so every weight is known in closed
// form.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <initializer_list>

namespace accrue::test {

inline constexpr double ten_batches_lr = 0.005;

/// w in float64.
struct Line : torch::nn::Module {
  Line() { w = register_parameter("w", at::zeros({1}, at::kDouble)); }
  at::Tensor loss(double x) { return (w * x - 2.0 * x).square().mean(); }
  double weight() const { return w.item<double>(); }
  at::Tensor w;
};

/// The batch of micro-step m = 1, 2, ... as epochs of ten go round.
inline double batch_of(std::int64_t m) {
  return static_cast<double>((m - 1) % 10 + 1);
}

/// w after groups that multiply d by these factors.
inline double weight_after(std::initializer_list<double> factors) {
  double d = -2.0;
  for (const double factor : factors) d *= factor;
  return 2.0 + d;
}

}  // namespace accrue::test
