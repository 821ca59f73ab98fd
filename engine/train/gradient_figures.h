// SPDX-License-Identifier: Apache-2.0
// Figures of two gradients, equal on all ranks. Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/training.h"

namespace accrue {

/// Sums over the replicas; a tensor is summed in place. Collective: the data axis.
at::Tensor summed(Training& training, at::Tensor flat);
double summed(Training& training, double value);
double largest(Training& training, double value);

/// L2 norm.
double length_of(const at::Tensor& flat);
/// |found - wanted| / |wanted|, in L2 norms; infinite if `wanted` is zero and `found` is not.
double relative_difference(const at::Tensor& found, const at::Tensor& wanted);

}  // namespace accrue
