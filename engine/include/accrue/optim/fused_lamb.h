// SPDX-License-Identifier: Apache-2.0
// FusedLAMB: LAMB over all parameters, after clipping the gradients of all groups by their common norm. Parameters are
// float32 with gradients in float32, float16 or bfloat16, or both have one type of float16, bfloat16 and float64; half
// precision is computed in float32. Source: colossalai.nn.optimizer.FusedLAMB. Unlike the original, it does not change
// gradients, unless replay_overwritten_gradients requests it: each then holds its update after a step. max_grad_norm is
// that of the defaults, as upstream.
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct FusedLAMBOptions : torch::optim::OptimizerCloneableOptions<FusedLAMBOptions> {
  FusedLAMBOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(bool, bias_correction) = true;
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0.01;
  TORCH_ARG(bool, amsgrad) = false;  ///< true is refused, as upstream
  TORCH_ARG(bool, adam_w_mode) = true;
  TORCH_ARG(bool, grad_averaging) = true;
  TORCH_ARG(bool, set_grad_none) = true;   ///< zero_grad() drops the gradients instead of zeroing them
  TORCH_ARG(double, max_grad_norm) = 1.0;  ///< 0: no clipping
  TORCH_ARG(bool, use_nvlamb) = false;     ///< also scales parameters without weight decay
  TORCH_ARG(bool, replay_overwritten_gradients) = false;
  TORCH_ARG(std::int64_t, step) = 0;  ///< of the group

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with g' = min(1, max_grad_norm / |g|) g, where |g| is the norm of all gradients together (g' = g if
/// max_grad_norm is 0), and t and c as in FusedAdam:
///   m = beta1 m + a g', a = 1 - beta1 under grad_averaging, else 1;  v = beta2 v + (1 - beta2) g'^2
///   u = (m / c1) / (sqrt(v / c2) + eps) + weight_decay p;  p = p - lr (|p| / |u|) u
/// |p| and |u| are norms of one parameter. The ratio is 1 if either is 0, and without weight decay unless use_nvlamb.
/// Without adam_w_mode weight_decay p joins g', after the clipping.
class FusedLAMB : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit FusedLAMB(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedLAMBOptions defaults = {});
  explicit FusedLAMB(std::vector<at::Tensor> params, FusedLAMBOptions defaults = {})
      : FusedLAMB({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override;
  /// Drops the gradients, or zeroes them if set_grad_none is false.
  void zero_grad();
};

}  // namespace accrue
