// SPDX-License-Identifier: Apache-2.0
// The same updates written with LibTorch's operators, for any device: several kernels a stretch, and nothing is read
// back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "accrue/optim/flat_optimizer.h"

namespace accrue {

std::unique_ptr<FlatOptimizer> make_tensor_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSegment> segments,
                                                     std::int64_t numel, at::TensorOptions options);

/// Sum of squares over the ranges, float64 [], on the tensor's device.
at::Tensor tensor_square_sum(const at::Tensor& flat, std::span<const FlatRange> ranges);

}  // namespace accrue
