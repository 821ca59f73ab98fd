// SPDX-License-Identifier: Apache-2.0
// Two passes over the gradients: one norm per tensor, one multiplication. The norm over tensors is computed in double,
// and a 16-bit tensor's own in float, so neither overflows before the gradients do. One number is copied from the
// device; a norm within the bound needs no second pass.
// Source: the role of torch.nn.utils.clip_grad_norm_ and clip_grad_value_.
#include "accrue/accumulation/clip_grad_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "update/clip_factor.h"

namespace accrue {

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& each : parameters)
    if (each.grad().defined()) gradients.push_back(each.grad());
  return gradients;
}

at::Tensor gradient_norm(const std::vector<at::Tensor>& gradients, double norm_type) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  norms.reserve(gradients.size());
  for (const at::Tensor& each : gradients) {
    const auto sum_type = each.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor norm = at::linalg_vector_norm(each, norm_type, at::OptionalIntArrayRef{}, false, sum_type);
    norms.push_back(norm.to(gradients.front().device(), at::kDouble));
  }
  // The p-norm of all gradients is the p-norm of their p-norms.
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

double clip_grad_norm(const std::vector<at::Tensor>& parameters, double max_norm, const ClipNormOptions& options) {
  const at::NoGradGuard no_grad;
  const auto gradients = gradients_of(parameters);
  if (gradients.empty()) return 0.0;
  const double norm = gradient_norm(gradients, options.norm_type).item<double>();
  if (options.error_if_nonfinite && !std::isfinite(norm))
    throw std::runtime_error("clip_grad_norm: the norm of the gradients is " + std::to_string(norm) +
                             "; look at the loss, or leave error_if_nonfinite off to go on");
  const double factor = clip_factor(norm, max_norm);
  // Within the bound nothing is multiplied.
  // A norm of NaN makes every gradient NaN. An infinite one has the factor 0: finite gradients become 0, infinite ones
  // NaN. Both are as in torch.
  if (factor == 1.0) return norm;
  for (const at::Tensor& each : gradients) each.mul_(factor);
  return norm;
}

void clip_grad_value(const std::vector<at::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& each : gradients_of(parameters)) each.clamp_(-clip_value, clip_value);
}

}  // namespace accrue
