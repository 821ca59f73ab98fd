// SPDX-License-Identifier: Apache-2.0
// One norm over all gradients and one factor for all of them. Low-precision gradients are summed in float32: the norm
// of a large float16 tensor is easily beyond what float16 holds. Cost: one read and, where it clips, one write of the
// gradients, and one number copied from the device. Source: the role of torch.nn.utils.clip_grad_norm_ and
// clip_grad_value_; 1e-6 in the denominator is theirs.
#include "accrue/accumulation/mmengine/clip_grad.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace accrue::mmengine {
namespace {

double total_norm(const std::vector<at::Tensor>& gradients, double norm_type) {
  std::vector<at::Tensor> norms;
  norms.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) {
    const auto dtype = gradient.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor norm = at::linalg_vector_norm(gradient, norm_type, at::OptionalIntArrayRef{}, false, dtype);
    norms.push_back(norm.to(gradients.front().device(), at::kDouble));
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type).item<double>();
}

double clip_by_norm(const ClipGrad& clip, const std::vector<at::Tensor>& gradients) {
  const double norm = total_norm(gradients, clip.norm_type);
  if (clip.error_if_nonfinite && !std::isfinite(norm))
    throw std::runtime_error("clip_grad: the norm of the gradients is " + std::to_string(norm) +
                             "; look at the loss, or leave error_if_nonfinite off to go on");
  const double factor = clip.max_norm / (norm + 1e-6);
  if (!(factor >= 1.0))
    for (const at::Tensor& gradient : gradients) gradient.mul_(factor);
  return norm;
}

}  // namespace

void check(const ClipGrad& clip) {
  const bool by_norm = clip.type == ClipGrad::Type::norm;
  if ((by_norm ? clip.max_norm : clip.clip_value) > 0.0) return;
  throw std::invalid_argument(std::string("clip_grad: ") + (by_norm ? "max_norm" : "clip_value") +
                              " is not above 0, which would zero every gradient; leave clip_grad out to not clip");
}

std::optional<double> clip_gradients(const ClipGrad& clip, const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  if (gradients.empty()) return std::nullopt;
  if (clip.type == ClipGrad::Type::norm) return clip_by_norm(clip, gradients);
  for (at::Tensor& gradient : gradients) gradient.clamp_(-clip.clip_value, clip.clip_value);
  return std::nullopt;
}

}  // namespace accrue::mmengine
