// SPDX-License-Identifier: Apache-2.0
// Norms of whole parameters, for the optimizers that scale a step by them, where ranks hold parts.
#pragma once

#include <ATen/core/Tensor.h>

#include "train/training.h"

namespace accrue {

/// Completes the sums of squares of the optimizer's segments (CompleteSums): over the data axis under ZeRO, and over
/// the tensor axis for parameters that it divides. In the order of the ranks, so all get the same bits. Collective:
/// those axes.
void complete_sums(const Training& training, at::Tensor& sums);

}  // namespace accrue
