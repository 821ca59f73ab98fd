// SPDX-License-Identifier: Apache-2.0
// HybridAdam: updates parameters on the CPU like CPUAdam, and those on a device like FusedAdam. Source:
// colossalai.nn.optimizer.HybridAdam. See cpu_adam.h for types and files.
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"
#include "accrue/optim/cpu_adam.h"

namespace accrue {

/// Same settings with the same defaults.
using HybridAdamOptions = CPUAdamOptions;

/// One step is CPUAdam's, on a device too: t is the parameter's own count. Only the order of operations is FusedAdam's
/// there, v / c2 before the root, so the two places round differently.
class HybridAdam : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit HybridAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, HybridAdamOptions defaults = {});
  explicit HybridAdam(std::vector<at::Tensor> params, HybridAdamOptions defaults = {})
      : HybridAdam({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override { return step(std::move(closure), -1.0); }
  /// A div_scale above 0, a loss scale, divides the gradients as they are read.
  at::Tensor step(LossClosure closure, double div_scale);
};

}  // namespace accrue
