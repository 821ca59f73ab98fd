// SPDX-License-Identifier: Apache-2.0
// p = p - lr r b, with b = momentum b + clamp(g + weight_decay p, -10, 10) and the trust ratio
// r = eeta |p| / (|g| + weight_decay |p| + epsilon), at most 50 (lars_step()).
#include "accrue/optim/lars.h"

#include <memory>

#include "accrue/optim/param_state.h"
#include "optim/torch_updates.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

void check_lars(const LarsOptions& by) {
  require_not_negative(by.lr(), "Lars", "lr");
  require_not_negative(by.momentum(), "Lars", "momentum");
  require_not_negative(by.weight_decay(), "Lars", "weight_decay");
  require_not_negative(by.epsilon(), "Lars", "epsilon");
  require(by.eeta() > 0.0 && by.eeta() <= 1.0, "Lars",
          "eeta is " + std::to_string(by.eeta()) + "; it is above 0 and at most 1");
}

}  // namespace

Lars::Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, LarsOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<LarsOptions>(std::move(defaults))) {
  check_groups<LarsOptions>(*this, "Lars", check_lars);
}

at::Tensor Lars::step(LossClosure closure) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  auto reached = reached_parameters<LarsOptions>(*this, "Lars");
  for (auto& each : reached) {
    if (each.options->momentum() == 0.0) continue;
    auto& state = state_of<MomentumParamState>(*this, each.parameter);
    if (!state.momentum_buffer().defined()) state.momentum_buffer(zeros_for(each.parameter));
    each.tensors.first = packed(state.momentum_buffer());
  }
  by_path(reached, [&](const auto& those, UpdatePath path) {
    std::vector<Piece<LarsStep>> pieces;
    for (const auto& each : those) pieces.push_back({each.tensors, {}});
    // [parameters, 2]: |p|^2 and |g|^2. The ratio must be known before the one pass that updates.
    const at::Tensor sums = lars_sums_pass(pieces, path).cpu();
    for (std::size_t i = 0; i < those.size(); ++i) {
      const LarsOptions& by = *those[i].options;
      const double* const row = sums.const_data_ptr<double>() + 2 * i;
      pieces[i].step = lars_step({.lr = by.lr(),
                                  .momentum = by.momentum(),
                                  .eeta = by.eeta(),
                                  .weight_decay = by.weight_decay(),
                                  .epsilon = by.epsilon(),
                                  .lars = by.lars()},
                                 {.params = row[0], .steps = row[1]}, 1.0);
    }
    lars_pass(pieces, path);
  });
  return loss;
}

}  // namespace accrue
