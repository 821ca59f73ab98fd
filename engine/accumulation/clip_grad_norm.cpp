// SPDX-License-Identifier: Apache-2.0
// Two passes over the gradients: one norm per tensor, one multiplication. The sum over tensors is taken in double,
// and a 16-bit tensor's own in float, so neither overflows before the gradients do. A norm within the bound costs no
// second pass.
#include "accrue/accumulation/clip_grad_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>
#include <optional>

namespace accrue {

double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  double squares = 0.0;
  for (const at::Tensor& each : parameters) {
    if (!each.grad().defined()) continue;
    const auto type = each.grad().scalar_type();
    const bool narrow = type == at::kHalf || type == at::kBFloat16;
    const auto sum_type = narrow ? std::optional(at::kFloat) : std::nullopt;
    const double norm = at::linalg_vector_norm(each.grad(), 2, std::nullopt, false, sum_type).item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  const double factor = max_norm / (norm + 1e-6);  // a little below the bound, whatever rounding does
  if (factor >= 1.0) return norm;
  for (const at::Tensor& each : parameters)
    if (each.grad().defined()) each.grad().mul_(factor);
  return norm;
}

}  // namespace accrue
