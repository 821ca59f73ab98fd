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
