// SPDX-License-Identifier: Apache-2.0
// The rule is AdamWRule of kernels/element_rules.inl.h. Each parameter counts its own steps t for the bias corrections
// 1 - beta^t, so one that was frozen begins at 1 when it gets a gradient.
#include "accrue/optim/cpu_adam.h"

#include <memory>

#include "optim/cpu_adam_update.h"

namespace accrue {

CPUAdam::CPUAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, CPUAdamOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<CPUAdamOptions>(std::move(defaults))) {
  check_groups<CPUAdamOptions>(*this, "CPUAdam", [](const auto& by) { check_cpu_adam(by, "CPUAdam"); });
}

at::Tensor CPUAdam::step(LossClosure closure, double div_scale) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  step_with_files<CPUAdamOptions>(*this, "CPUAdam", [&](const auto& reached, UpdatePath path) {
    std::vector<Piece<AdamWStep>> pieces;
    for (const auto& each : reached)
      pieces.push_back(
          {each.tensors, adamw_step(adam_settings(*each.options),
                                    state_of<MomentsParamState>(*this, each.parameter).step(), scale_of(div_scale))});
    adamw_pass(pieces, path);
  });
  return loss;
}

}  // namespace accrue
