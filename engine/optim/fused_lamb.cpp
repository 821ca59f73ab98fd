// SPDX-License-Identifier: Apache-2.0
// p = p - lr r u, with u as in MomentsRule and r = |p| / |u| per parameter. Unlike You et al. it clips all gradients by
// their common norm first, and leaves r = 1 for parameters without decay unless use_nvlamb.
#include "accrue/optim/fused_lamb.h"

#include <cmath>
#include <memory>

#include "optim/moments_of_groups.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

void check_fused_lamb(const FusedLAMBOptions& by) {
  require_not_negative(by.lr(), "FusedLAMB", "lr");
  require_not_negative(by.eps(), "FusedLAMB", "eps");
  require_not_negative(by.weight_decay(), "FusedLAMB", "weight_decay");
  require_not_negative(by.max_grad_norm(), "FusedLAMB", "max_grad_norm");
  require_betas(by.betas(), "FusedLAMB");
  require(!by.amsgrad(), "FusedLAMB", "amsgrad is not supported, as it is not upstream");
}

MomentsSettings fused_lamb_settings(const FusedLAMBOptions& by) {
  return {.lr = by.lr(),
          .beta1 = std::get<0>(by.betas()),
          .beta2 = std::get<1>(by.betas()),
          .eps = by.eps(),
          .weight_decay = by.weight_decay(),
          .adamw_mode = by.adam_w_mode(),
          .bias_correction = by.bias_correction(),
          .grad_averaging = by.grad_averaging()};
}

/// Upstream leaves in each gradient the step that was taken, before its rate: its kernel stores u there to take |u|.
/// This comes between the passes, while p is still the old one, of which u contains weight_decay p.
template <typename Those>
void overwrite_gradients(const Those& those, const std::vector<Piece<MomentsStep>>& pieces) {
  const std::vector<at::Tensor> steps = lamb_steps(pieces);
  for (std::size_t i = 0; i < those.size(); ++i)
    if (those[i].options->replay_overwritten_gradients()) those[i].parameter.mutable_grad().copy_(steps[i]);
}

}  // namespace

FusedLAMB::FusedLAMB(const std::vector<torch::optim::OptimizerParamGroup>& groups, FusedLAMBOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<FusedLAMBOptions>(std::move(defaults))) {
  check_groups<FusedLAMBOptions>(*this, "FusedLAMB", check_fused_lamb);
}

at::Tensor FusedLAMB::step(LossClosure closure) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  auto reached = reached_parameters<FusedLAMBOptions>(*this, "FusedLAMB");
  std::vector<at::Tensor> grads;
  bool replays = false;
  for (const auto& each : reached) {
    grads.push_back(each.tensors.grads);
    replays = replays || each.options->replay_overwritten_gradients();
  }
  // min(1, max_grad_norm / |g|), with |g| over all parameters; multiplied into the gradients as they are read.
  const double clip =
      lamb_clip(std::sqrt(square_sum_pass(grads)), static_cast<const FusedLAMBOptions&>(defaults()).max_grad_norm());
  count_group_steps<FusedLAMBOptions>(*this);
  add_moments(*this, reached);
  WideMoments moments(reached);
  by_path(reached, [&](const auto& those, UpdatePath path) {
    std::vector<Piece<MomentsStep>> pieces;
    for (const auto& each : those)
      pieces.push_back({each.tensors, moments_step(fused_lamb_settings(*each.options), each.options->step(), clip)});
    // [parameters, 2]: |p|^2 and |u|^2, read back once for all parameters.
    const at::Tensor sums = lamb_moments_pass(pieces, path).cpu();
    if (replays) overwrite_gradients(those, pieces);
    std::vector<double> rates;
    for (std::size_t i = 0; i < those.size(); ++i) {
      const FusedLAMBOptions& by = *those[i].options;
      const double* const row = sums.const_data_ptr<double>() + 2 * i;
      const bool scales = by.use_nvlamb() || by.weight_decay() != 0.0;
      rates.push_back(by.lr() * (scales ? trust_ratio({.params = row[0], .steps = row[1]}) : 1.0));
    }
    lamb_apply_pass(pieces, rates, path);
  });
  moments.put_back();
  return loss;
}

void FusedLAMB::zero_grad() {
  Optimizer::zero_grad(static_cast<const FusedLAMBOptions&>(defaults()).set_grad_none());
}

}  // namespace accrue
