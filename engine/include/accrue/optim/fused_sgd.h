// SPDX-License-Identifier: Apache-2.0
// FusedSGD: SGD with momentum, dampening, Nesterov's momentum and weight decay before or after it, in one pass over all
// parameters. A parameter's first update sets its buffer to the gradient, whenever that update comes; upstream the last
// parameter decides for all. Parameters are float32 with gradients in float32, float16 or bfloat16, or both have one
// type of float16, bfloat16 and float64; half precision is computed in float32. Source:
// colossalai.nn.optimizer.FusedSGD. Thread: the training thread. Shapes: parameters of any shape, each with a gradient
// and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct FusedSGDOptions : torch::optim::OptimizerCloneableOptions<FusedSGDOptions> {
  FusedSGDOptions(double lr) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as SGDOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.0;
  TORCH_ARG(double, dampening) = 0.0;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(bool, wd_after_momentum) = false;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with g' = g + weight_decay p, or g' = g if wd_after_momentum:
///   b = momentum b + (1 - dampening) g', in the first update g';  d = b, or with nesterov g' + momentum b
///   p = p - lr d, or p - lr (d + weight_decay p) if wd_after_momentum
/// Without momentum d is g', and there is no state. The rate is outside the buffer, as in PyTorch and unlike Sutskever
/// et al. (2013): a new rate acts at once on old gradients too.
class FusedSGD : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit FusedSGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedSGDOptions defaults);
  explicit FusedSGD(std::vector<at::Tensor> params, FusedSGDOptions defaults)
      : FusedSGD({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override;
  /// Does nothing if noop is set: some gradient was not finite.
  at::Tensor step(LossClosure closure, bool noop);
};

}  // namespace accrue
