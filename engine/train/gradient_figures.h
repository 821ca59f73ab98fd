// SPDX-License-Identifier: Apache-2.0
// Figures of two gradients, equal on all ranks. Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/training.h"

namespace accrue {

/// Sums over the replicas. Collective: the data axis.
at::Tensor summed(Training& training, at::Tensor flat);
double summed(Training& training, double value);
double largest(Training& training, double value);

double length_of(const at::Tensor& flat);
/// Relative difference of the L2 norms, relative to `wanted`; infinite if that is zero and `found` is not.
double relative_difference(const at::Tensor& found, const at::Tensor& wanted);

}  // namespace accrue
