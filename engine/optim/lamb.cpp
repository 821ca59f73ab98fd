// SPDX-License-Identifier: Apache-2.0
// p = p - rate r u, with u = m / (sqrt(v) + eps) + weight_decay p, r = |p| / |u| per parameter (1 if adam), and
// rate = lr sqrt(1 - beta2^t) / (1 - beta1^t) with bias correction, else lr.
#include "accrue/optim/lamb.h"

#include <memory>

#include "optim/moments_of_groups.h"
#include "optim/update_rules.h"

namespace accrue {
namespace {

void check_lamb(const LambOptions& by) {
  require_not_negative(by.lr(), "Lamb", "lr");
  require_not_negative(by.eps(), "Lamb", "eps");
  require_not_negative(by.weight_decay(), "Lamb", "weight_decay");
  require_betas(by.betas(), "Lamb");
}

MomentsSettings lamb_settings(const LambOptions& by) {
  return {.lr = by.lr(),
          .beta1 = std::get<0>(by.betas()),
          .beta2 = std::get<1>(by.betas()),
          .eps = by.eps(),
          .weight_decay = by.weight_decay(),
          .bias_correction = by.bias_correction()};
}

}  // namespace

Lamb::Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, LambOptions defaults)
    : ArchivedOptimizer(groups, std::make_unique<LambOptions>(std::move(defaults))) {
  check_groups<LambOptions>(*this, "Lamb", check_lamb);
}

at::Tensor Lamb::step(LossClosure closure) {
  const at::NoGradGuard no_grad;
  const at::Tensor loss = loss_of(closure);
  auto reached = reached_parameters<LambOptions>(*this, "Lamb");
  add_moments(*this, reached);
  WideMoments moments(reached);
  by_path(reached, [&](const auto& those, UpdatePath path) {
    std::vector<Piece<MomentsStep>> pieces;
    for (const auto& each : those) {
      MomentsSettings by = lamb_settings(*each.options);
      // The rate is corrected instead, so t = 1 is not read. Nothing scales the gradients.
      by.bias_correction = false;
      pieces.push_back({each.tensors, moments_step(by, 1, 1.0)});
    }
    // [parameters, 2]: |p|^2 and |u|^2, read back once for all parameters.
    const at::Tensor sums = lamb_moments_pass(pieces, path).cpu();
    std::vector<double> rates;
    for (std::size_t i = 0; i < those.size(); ++i) {
      const double* const row = sums.const_data_ptr<double>() + 2 * i;
      const std::int64_t steps = state_of<MomentsParamState>(*this, those[i].parameter).step();
      const double ratio = those[i].options->adam() ? 1.0 : trust_ratio({.params = row[0], .steps = row[1]});
      rates.push_back(lamb_rate(lamb_settings(*those[i].options), steps) * ratio);
    }
    lamb_apply_pass(pieces, rates, path);
  });
  moments.put_back();
  return loss;
}

}  // namespace accrue
