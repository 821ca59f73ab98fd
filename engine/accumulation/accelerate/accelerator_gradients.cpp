// SPDX-License-Identifier: Apache-2.0
// Clipping, and its preparations. It is never gated, as in the original. So a caller who does not check sync_gradients
// clips partial sums; with fp16 the second such call is the scaler's error.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "accelerator_impl.h"
#include "accrue/accumulation/clip_grad_norm.h"
#include "update/clip_factor.h"

namespace accrue::accelerate {

void Accelerator::unscale_gradients(AcceleratedOptimizer* optimizer) {
  if (!impl_->scaler) return;
  for (const auto& each : impl_->optimizers)
    if (optimizer == nullptr || each.get() == optimizer) impl_->settle(each->models());
  for (const auto& each : impl_->optimizers)
    if (optimizer == nullptr || each.get() == optimizer) impl_->scaler->unscale(each->inner());
}

void AcceleratorImpl::settle_to_clip(const std::vector<at::Tensor>& parameters) {
  settle(models_of(parameters));
  if (!scaler) return;
  const TensorSet clipped(parameters);
  for (const auto& each : optimizers)
    if (clipped.holds_any(each->parameters())) scaler->unscale(each->inner());
}

at::Tensor Accelerator::clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type) {
  impl_->settle_to_clip(parameters);
  const at::NoGradGuard no_grad;
  const auto gradients = gradients_of(parameters);
  if (gradients.empty()) return at::zeros({});
  const at::Tensor total = gradient_norm(gradients, norm_type);
  // [] on the device: nothing waits for the norm, so gradients within the bound are multiplied by 1 too.
  const at::Tensor factor = clip_factor(total, max_norm);
  for (const at::Tensor& each : gradients) each.mul_(factor);
  return total;
}

void Accelerator::clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  impl_->settle_to_clip(parameters);
  clip_grad_value(parameters, clip_value);
}

}  // namespace accrue::accelerate
