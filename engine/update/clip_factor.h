// SPDX-License-Identifier: Apache-2.0
// Clipping by the norm, for all systems.
// Source: the role of torch.nn.utils.clip_grad_norm_; the 1e-6 is its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace accrue {

/// Returns the factor for gradients with that norm: min(1, max_norm / (norm + 1e-6)), slightly below the bound despite
/// rounding. NaN if the norm is NaN.
double clip_factor(double norm, double max_norm);
/// Does the same for a norm on a device, without waiting for it.
at::Tensor clip_factor(const at::Tensor& norm, double max_norm);
/// Scales a flat gradient [numel] in place by clip_factor(); a bound of 0 changes nothing. Does not wait for a device.
void clip_flat_norm(at::Tensor& grads, double max_norm);

}  // namespace accrue
