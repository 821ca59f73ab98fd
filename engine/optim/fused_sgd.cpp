// SPDX-License-Identifier: Apache-2.0
// The rule is FusedSgdRule of kernels/element_rules.inl.h. In a parameter's first update the buffer becomes the
// gradient, undampened, as in PyTorch's SGD.
#include "accrue/optim/fused_sgd.h"

#include <memory>
#include <utility>

#include "accrue/optim/param_state.h"
#include "optim/torch_updates.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

void check_fused_sgd(const FusedSGDOptions& by) {
  require_not_negative(by.lr(), "FusedSGD", "lr");
  require_not_negative(by.momentum(), "FusedSGD", "momentum");
  require_not_negative(by.weight_decay(), "FusedSGD", "weight_decay");
  require(!by.nesterov() || (by.momentum() > 0.0 && by.dampening() == 0.0), "FusedSGD",
          "nesterov needs a momentum above 0 and no dampening");
}

}  // namespace

FusedSGD::FusedSGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedSGDOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<FusedSGDOptions>(std::move(defaults))) {
  check_groups<FusedSGDOptions>(*this, "FusedSGD", check_fused_sgd);
}

at::Tensor FusedSGD::step(LossClosure closure, bool noop) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  if (noop) return loss;
  auto reached = reached_parameters<FusedSGDOptions>(*this, "FusedSGD");
  std::vector<bool> first(reached.size());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i].options->momentum() == 0.0) continue;
    auto& state = state_of<MomentumParamState>(*this, reached[i].parameter);
    first[i] = !state.momentum_buffer().defined();
    if (first[i]) state.momentum_buffer(zeros_for(reached[i].parameter));
    reached[i].tensors.first = packed(state.momentum_buffer());
    // by_path() regroups the parameters; this finds first[i] again.
    reached[i].place = i;
  }
  by_path(reached, [&](const auto& those, UpdatePath path) {
    std::vector<Piece<FusedSgdStep>> pieces;
    for (const auto& each : those) {
      const FusedSGDOptions& by = *each.options;
      const bool begins = by.momentum() != 0.0 && first[each.place];
      pieces.push_back({each.tensors, fused_sgd_step({.lr = by.lr(),
                                                      .momentum = by.momentum(),
                                                      .dampening = by.dampening(),
                                                      .weight_decay = by.weight_decay(),
                                                      .nesterov = by.nesterov(),
                                                      .wd_after_momentum = by.wd_after_momentum()},
                                                     begins, 1.0)});
    }
    fused_sgd_pass(pieces, path);
  });
  return loss;
}

at::Tensor FusedSGD::step(LossClosure closure) {
  return step(std::move(closure), false);
}

}  // namespace accrue
