// SPDX-License-Identifier: Apache-2.0
// Flat optimizers by a given path: that of their device, or a device's path on the CPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "accrue/optim/flat_optimizer.h"
#include "optim/update_passes.h"

namespace accrue {

/// As make_flat_optimizer() of the public header.
std::unique_ptr<FlatOptimizer> make_flat_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                   std::int64_t numel, at::TensorOptions options, UpdatePath path);

/// Returns the sum of squares, float64 [], on the tensor's device, without reading it back.
at::Tensor square_sum_of(const at::Tensor& tensor);
/// Does the same over ranges of a flat tensor.
at::Tensor tensor_square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges);

}  // namespace accrue
