// SPDX-License-Identifier: Apache-2.0
// FusedAdam: Adam with bias correction before the root, in one pass over all parameters. It counts steps per group, not
// per parameter. Parameters are float32 with gradients in float32, float16 or bfloat16, or both have one type of
// float16, bfloat16 and float64; half precision is computed in float32. Non-finite gradients are applied. Source:
// colossalai.nn.optimizer.FusedAdam.
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct FusedAdamOptions : torch::optim::OptimizerCloneableOptions<FusedAdamOptions> {
  FusedAdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(bool, bias_correction) = true;
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(bool, adamw_mode) = true;     ///< decay decoupled from the gradient; otherwise added to it
  TORCH_ARG(bool, amsgrad) = false;       ///< true is refused, as upstream
  TORCH_ARG(bool, set_grad_none) = true;  ///< zero_grad() drops the gradients instead of zeroing them
  TORCH_ARG(std::int64_t, step) = 0;      ///< of the group

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with g' = g / div_scale, t the steps of the group and c = 1 - beta^t (1 without bias_correction):
///   m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2
///   p = p - lr ((m / c1) / (sqrt(v / c2) + eps) + weight_decay p)
/// Without adamw_mode weight_decay p joins g' instead. But for rounding and t that is CPUAdam's step.
class FusedAdam : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit FusedAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedAdamOptions defaults = {});
  explicit FusedAdam(std::vector<at::Tensor> params, FusedAdamOptions defaults = {})
      : FusedAdam({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override { return step(std::move(closure), -1.0); }
  /// A div_scale above 0, a loss scale, divides the gradients as they are read.
  at::Tensor step(LossClosure closure, double div_scale);
  /// Drops the gradients, or zeroes them if set_grad_none is false.
  void zero_grad();
};

}  // namespace accrue
