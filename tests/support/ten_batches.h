// SPDX-License-Identifier: Apache-2.0
// The ten-batch case: batch b = 1..10 is one sample x = b, y = 2b; the model is w x with w = 0 at first; squared error,
// SGD with rate 0.005, float64. With d = w - 2, a group of batches multiplies d by 1 - 0.005 * sum(2 b^2) / divisor, so
// every weight can be computed by hand.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "accrue/accumulation/base_scheduler.h"
#include "support/near.h"

namespace accrue::test {

struct Line : torch::nn::Module {
  Line() { w = register_parameter("w", at::zeros({1}, at::kDouble)); }
  /// Of batch b; `slope` is what the line should become.
  at::Tensor loss(double b, double slope = 2.0) const { return (w * b - slope * b).square().mean(); }
  double weight() const { return w.item<double>(); }
  double gradient() const { return w.grad().defined() ? w.grad().item<double>() : 0.0; }
  at::Tensor w;
};

inline constexpr double ten_batch_lr = 0.005;

inline std::vector<int> ten_batches() {
  std::vector<int> batches(10);
  std::iota(batches.begin(), batches.end(), 1);
  return batches;
}

inline torch::optim::SGD sgd_over(const Line& line, double lr = ten_batch_lr) {
  return torch::optim::SGD({line.w}, torch::optim::SGDOptions(lr));
}

struct SgdLine {
  explicit SgdLine(double lr = ten_batch_lr) : sgd(sgd_over(line, lr)) {}
  Line line;
  torch::optim::SGD sgd;
};

/// gamma to the power of the position.
inline LambdaLR decay_of(torch::optim::Optimizer& optimizer, double gamma = 0.9) {
  return LambdaLR(optimizer, [gamma](std::int64_t n) { return std::pow(gamma, static_cast<double>(n)); });
}

/// The batch of micro-step m = 1, 2, ... in epochs of ten.
inline double batch_of(std::int64_t m) {
  return static_cast<double>((m - 1) % 10 + 1);
}

/// Returns the factor of d = w - 2 in one update.
inline double group_factor(std::initializer_list<int> group, double divisor) {
  double sum = 0.0;
  for (const int b : group) sum += 2.0 * b * b;
  return 1.0 - ten_batch_lr * sum / divisor;
}

/// w after updates with these factors.
inline double weight_after(std::initializer_list<double> factors) {
  double d = -2.0;
  for (const double each : factors) d *= each;
  return 2.0 + d;
}

}  // namespace accrue::test

/// Passes if equal to 1e-12; a failure shows both in full.
#define ACCRUE_NEAR(value, expected)                                                                                  \
  do {                                                                                                                \
    const double accrue_value = (value), accrue_expected = (expected);                                                \
    QVERIFY2(accrue::test::near(accrue_value, accrue_expected),                                                       \
             qPrintable(                                                                                              \
                 QStringLiteral("%1 instead of %2").arg(accrue_value, 0, 'g', 17).arg(accrue_expected, 0, 'g', 17))); \
  } while (false)
