// SPDX-License-Identifier: Apache-2.0
// Optimizer state of one parameter, shared by all optimizers with two moments and by all with a momentum. Thread: the
// training thread. Shapes: each tensor has its parameter's.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>
#include <torch/optim/optimizer.h>

#include <cstdint>

namespace accrue {

/// Moments m and v of Adam and LAMB, in the parameter's own type: those of a half-precision parameter are rounded to it
/// after each update.
struct MomentsParamState : torch::optim::OptimizerCloneableParamState<MomentsParamState> {
  TORCH_ARG(std::int64_t, step) = 0;  ///< updates of this parameter
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_sq);
  TORCH_ARG(bool, in_files) = false;  ///< CPUAdam, HybridAdam: the moments are where offloading places them
};

/// Buffer b of FusedSGD and Lars, in the parameter's own type. Undefined before the first update with a momentum, by
/// which FusedSGD recognises that update.
struct MomentumParamState : torch::optim::OptimizerCloneableParamState<MomentumParamState> {
  TORCH_ARG(at::Tensor, momentum_buffer);
};

}  // namespace accrue
