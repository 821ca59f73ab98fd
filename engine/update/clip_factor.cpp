// SPDX-License-Identifier: Apache-2.0
#include "update/clip_factor.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>

#include <cmath>

#include "optim/flat_paths.h"

namespace accrue {
namespace {

constexpr double margin = 1e-6;

}  // namespace

double clip_factor(double norm, double max_norm) {
  const double factor = max_norm / (norm + margin);
  return factor < 1.0 || std::isnan(factor) ? factor : 1.0;
}

at::Tensor clip_factor(const at::Tensor& norm, double max_norm) {
  return at::clamp(max_norm / (norm + margin), std::nullopt, 1.0);
}

void clip_flat_norm(at::Tensor& grads, double max_norm) {
  if (max_norm == 0.0) return;
  if (grads.is_cpu()) {
    grads.mul_(clip_factor(flat_norm(grads), max_norm));
    return;
  }
  const FlatRange whole{0, grads.numel()};
  const at::Tensor norm = tensor_square_sum(grads, {&whole, 1}).sqrt_();
  // Rounds once more than clip_factor(), so that numbers of existing runs on a device stay the same.
  grads.mul_(norm.add_(margin).reciprocal_().mul_(max_norm).clamp_max_(1.0));
}

}  // namespace accrue
