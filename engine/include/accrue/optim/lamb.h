// SPDX-License-Identifier: Apache-2.0
// Lamb: Adam's step, scaled for each parameter by the parameter's norm over the step's norm. Parameters are float32
// with gradients in float32, float16 or bfloat16, or both have one type of float16, bfloat16 and float64; half
// precision is computed in float32. Source: colossalai.nn.optimizer.Lamb; You et al., arXiv:1904.00962.
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <tuple>
#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct LambOptions : torch::optim::OptimizerCloneableOptions<LambOptions> {
  LambOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(bool, adam) = false;             ///< without the scale, for comparison
  TORCH_ARG(bool, bias_correction) = false;  ///< corrects the rate, not eps

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with t the parameter's own count of updates:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   u = m / (sqrt(v) + eps) + weight_decay p;  p = p - lr (|p| / |u|) u
/// The ratio is 1 if a norm is 0, or under `adam`. u is r + lambda x of You et al., algorithm 2, whose phi is the
/// identity here. As upstream, nothing corrects the bias by default; bias_correction multiplies lr by
/// sqrt(1 - beta2^t) / (1 - beta1^t).
class Lamb : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, LambOptions defaults = {});
  explicit Lamb(std::vector<at::Tensor> params, LambOptions defaults = {})
      : Lamb({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override;
};

}  // namespace accrue
