// SPDX-License-Identifier: Apache-2.0
// Colossal-AI's update rules on flat memory.
#pragma once

#include <memory>
#include <vector>

#include "accrue/optim/flat_optimizer.h"
#include "optim/update_passes.h"

namespace accrue {

/// For the kinds after adamw. Arguments as make_flat_optimizer() of flat_paths.h.
std::unique_ptr<FlatOptimizer> make_colossalai_optimizer(const OptimizerSpec& spec,
                                                         std::vector<OptimizerSegment> segments, std::int64_t numel,
                                                         at::TensorOptions options, UpdatePath path);

}  // namespace accrue
