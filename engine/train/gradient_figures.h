// SPDX-License-Identifier: Apache-2.0
// Figures of two gradients that all ranks judge by alike. Thread: training.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/training.h"

namespace accrue {

/// Over the replicas. Collective: the data axis.
at::Tensor summed(Training& training, at::Tensor flat);
double summed(Training& training, double value);
double largest(Training& training, double value);

double length_of(const at::Tensor& flat);
/// Of the lengths (L2), relative to `wanted`; infinite where that is zero and `found` is not.
double relative_difference(const at::Tensor& found, const at::Tensor& wanted);

}  // namespace accrue
