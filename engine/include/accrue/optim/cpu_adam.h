// SPDX-License-Identifier: Apache-2.0
// CPUAdam: Adam in one pass over all parameters, for the CPU. Its states may be in files, which disappear with the
// process. Parameters are float32 with gradients in float32, float16 or bfloat16, or both have one type of float16,
// bfloat16 and float64; half precision is computed in float32. On a device it computes the same with LibTorch's
// operators. Source: colossalai.nn.optimizer.CPUAdam. Unlike the original, bias_correction and div_scale hold for every
// type and device, and a state in files is in state_dict().
// Thread: the training thread. Shapes: parameters of any shape, each with a gradient and states of its own shape.
#pragma once

#include <torch/arg.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "accrue/optim/archived_optimizer.h"

namespace accrue {

struct CPUAdamOptions : torch::optim::OptimizerCloneableOptions<CPUAdamOptions> {
  CPUAdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(bool, bias_correction) = true;
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(bool, adamw_mode) = true;              ///< decay decoupled from the gradient; otherwise added to it
  TORCH_ARG(double, nvme_offload_fraction) = 0.0;  ///< fraction of the CPU parameters' elements, in order; read once
  TORCH_ARG(std::optional<std::string>, nvme_offload_dir);  ///< default: the folder for temporary files

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

/// One step, with g' = g / div_scale, t the parameter's own count of updates and c = 1 - beta^t (1 without
/// bias_correction):
///   m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2
///   p = p (1 - lr weight_decay) - (lr / c1) m / (sqrt(v) / sqrt(c2) + eps)
/// Without adamw_mode p is not shrunk; weight_decay p joins g' instead. Source of the moments: Kingma and Ba,
/// arXiv:1412.6980, algorithm 1.
class CPUAdam : public ArchivedOptimizer {
 public:
  /// Errors: throws std::invalid_argument that names an unusable option.
  explicit CPUAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, CPUAdamOptions defaults = {});
  explicit CPUAdam(std::vector<at::Tensor> params, CPUAdamOptions defaults = {})
      : CPUAdam({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override { return step(std::move(closure), -1.0); }
  /// A div_scale above 0, a loss scale, divides the gradients as they are read.
  at::Tensor step(LossClosure closure, double div_scale);
};

}  // namespace accrue
