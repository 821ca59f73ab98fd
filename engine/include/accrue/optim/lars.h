// SPDX-License-Identifier: Apache-2.0
// Lars: momentum, scaled for each parameter by the parameter's norm over the gradient's norm. Parameters are float32
// with gradients in float32, float16 or bfloat16, or both have one type of float16, bfloat16 and float64; half
// precision is computed in float32. Source: colossalai.nn.optimizer.Lars; You et al., arXiv:1708.03888.
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct LarsOptions : torch::optim::OptimizerCloneableOptions<LarsOptions> {
  LarsOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.0;
  TORCH_ARG(double, eeta) = 1e-3;  ///< above 0, at most 1
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(double, epsilon) = 0.0;
  /// Per group. false: neither scaled nor decayed; gradients are still clamped to [-10, 10], as upstream.
  TORCH_ARG(bool, lars) = true;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with r = min(50, eeta |p| / (|g| + weight_decay |p| + epsilon)), or 1 if |p| or |g| is 0:
///   d = clamp(g + weight_decay p, -10, 10);  b = momentum b + d;  p = p - lr r b
/// With lars = false, r is 1 and weight_decay 0; the clamp stays. r is the local rate of You et al., algorithm 1. There
/// the buffer holds gradients with their rates; here, as upstream, the present lr and r scale old gradients too.
/// Neither the clamp nor the limit of 50 is in the paper.
class Lars : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, LarsOptions defaults = {});
  explicit Lars(std::vector<at::Tensor> params, LarsOptions defaults = {})
      : Lars({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace accrue
