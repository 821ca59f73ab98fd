// SPDX-License-Identifier: Apache-2.0
// Clipping by the norm, for all systems.
// Source: the role of torch.nn.utils.clip_grad_norm_; the 1e-6 is its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

/// What gradients of that norm are multiplied by: min(1, max_norm / (norm + 1e-6)), a little below the bound whatever
/// rounding does. Not a number where the norm is not.
double clip_factor(double norm, double max_norm);
/// The same of a norm on a device, which it does not wait for.
at::Tensor clip_factor(const at::Tensor& norm, double max_norm);
/// Scales a flat gradient [numel] in place by clip_factor(); a bound of 0 leaves it as it is. Does not wait for a
/// device.
void clip_flat_norm(at::Tensor& grads, double max_norm);

}  // namespace accrue
