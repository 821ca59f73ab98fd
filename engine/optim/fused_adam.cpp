// SPDX-License-Identifier: Apache-2.0
// p = p - lr u, with u as in MomentsRule of kernels/element_rules.inl.h. The group counts the steps t of the
// corrections 1 - beta^t: a parameter whose first gradient comes late is corrected as if it had been there from the
// start, as upstream.
#include "accrue/optim/fused_adam.h"

#include <memory>

#include "optim/moments_of_groups.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

void check_fused_adam(const FusedAdamOptions& by) {
  require_not_negative(by.lr(), "FusedAdam", "lr");
  require_not_negative(by.eps(), "FusedAdam", "eps");
  require_not_negative(by.weight_decay(), "FusedAdam", "weight_decay");
  require_betas(by.betas(), "FusedAdam");
  require(!by.amsgrad(), "FusedAdam", "amsgrad is not supported, as it is not upstream");
}

}  // namespace

FusedAdam::FusedAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedAdamOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<FusedAdamOptions>(std::move(defaults))) {
  check_groups<FusedAdamOptions>(*this, "FusedAdam", check_fused_adam);
}

at::Tensor FusedAdam::step(LossClosure closure, double div_scale) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  auto reached = reached_parameters<FusedAdamOptions>(*this, "FusedAdam");
  count_group_steps<FusedAdamOptions>(*this);
  add_moments(*this, reached);
  by_path(reached, [&](const auto& those, UpdatePath path) {
    std::vector<Piece<MomentsStep>> pieces;
    for (const auto& each : those) {
      const FusedAdamOptions& by = *each.options;
      pieces.push_back({each.tensors, moments_step({.lr = by.lr(),
                                                    .beta1 = std::get<0>(by.betas()),
                                                    .beta2 = std::get<1>(by.betas()),
                                                    .eps = by.eps(),
                                                    .weight_decay = by.weight_decay(),
                                                    .adamw_mode = by.adamw_mode(),
                                                    .bias_correction = by.bias_correction()},
                                                   by.step(), scale_of(div_scale))});
    }
    fused_adam_pass(pieces, path);
  });
  return loss;
}

void FusedAdam::zero_grad() {
  Optimizer::zero_grad(static_cast<const FusedAdamOptions&>(defaults()).set_grad_none());
}

}  // namespace accrue
