// SPDX-License-Identifier: Apache-2.0
// The same step in two forms, as upstream: CPUAdam's on the CPU (AdamWRule), FusedAdam's on a device (FusedAdamRule).
// They differ in rounding only.
#include "accrue/optim/hybrid_adam.h"

#include <memory>

#include "optim/cpu_adam_update.h"

namespace accrue {

HybridAdam::HybridAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, HybridAdamOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<HybridAdamOptions>(std::move(defaults))) {
  check_groups<HybridAdamOptions>(*this, "HybridAdam", [](const auto& by) { check_cpu_adam(by, "HybridAdam"); });
}

at::Tensor HybridAdam::step(LossClosure closure, double div_scale) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  step_with_files<HybridAdamOptions>(*this, "HybridAdam", [&](const auto& reached, UpdatePath path) {
    std::vector<Piece<AdamWStep>> on_cpu;
    std::vector<Piece<MomentsStep>> on_device;
    for (const auto& each : reached) {
      const std::int64_t steps = state_of<MomentsParamState>(*this, each.parameter).step();
      const MomentsSettings by = adam_settings(*each.options);
      if (path == UpdatePath::kernels)
        on_cpu.push_back({each.tensors, adamw_step(by, steps, scale_of(div_scale))});
      else
        on_device.push_back({each.tensors, moments_step(by, steps, scale_of(div_scale))});
    }
    adamw_pass(on_cpu, path);
    fused_adam_pass(on_device, path);
  });
  return loss;
}

}  // namespace accrue
