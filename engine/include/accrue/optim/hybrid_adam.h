// SPDX-License-Identifier: Apache-2.0
// HybridAdam: parameters on the CPU are updated as CPUAdam does, those on a device as FusedAdam does. Source:
// colossalai.nn.optimizer.HybridAdam. See cpu_adam.h for types and files.
#pragma once

#include <torch/arg.h>
#include <torch/optim/optimizer.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace accrue {

struct HybridAdamOptions : torch::optim::OptimizerCloneableOptions<HybridAdamOptions> {
  HybridAdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT(google-explicit-constructor): as AdamOptions
  TORCH_ARG(double, lr);
  TORCH_ARG(bool, bias_correction) = true;
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(bool, adamw_mode) = true;              ///< decay apart from the gradient; otherwise it is part of it
  TORCH_ARG(double, nvme_offload_fraction) = 0.0;  ///< of the numbers of the CPU parameters, in order; read once
  TORCH_ARG(std::optional<std::string>, nvme_offload_dir);  ///< left out: the folder for temporary files

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double lr) override { lr_ = lr; }
};

class HybridAdam : public torch::optim::Optimizer {
 public:
  /// Errors: throws std::invalid_argument naming the option that no update can use.
  explicit HybridAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, HybridAdamOptions defaults = {});
  explicit HybridAdam(std::vector<at::Tensor> params, HybridAdamOptions defaults = {})
      : HybridAdam({torch::optim::OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  /// Updates every parameter that has a gradient. Errors: throws std::invalid_argument for tensors that it cannot
  /// update together; nothing is changed then.
  at::Tensor step(LossClosure closure = nullptr) override { return step(std::move(closure), -1.0); }
  /// A div_scale above 0 divides the gradients first, as they are read: a loss scale.
  at::Tensor step(LossClosure closure, double div_scale);
};

}  // namespace accrue
