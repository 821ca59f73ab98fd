// SPDX-License-Identifier: Apache-2.0
// Moments of FusedAdam, FusedLAMB and Lamb. The first two count steps per group, Lamb per parameter; a state holds its
// parameter's count in either case.
#pragma once

#include <utility>
#include <vector>

#include "accrue/optim/param_state.h"
#include "optim/torch_updates.h"

namespace accrue {

/// Gives each parameter its moments, zeros of its shape and type at first, and counts its step. All moments exist
/// before the first update of a step: if memory is short, no parameter has changed.
template <typename Options>
void add_moments(torch::optim::Optimizer& optimizer, std::vector<Reached<Options>>& reached) {
  for (auto& each : reached) {
    auto& state = state_of<MomentsParamState>(optimizer, each.parameter);
    if (!state.exp_avg().defined()) {
      state.exp_avg(zeros_for(each.parameter));
      state.exp_avg_sq(zeros_for(each.parameter));
    }
    state.step(state.step() + 1);
    each.tensors.first = packed(state.exp_avg());
    each.tensors.second = packed(state.exp_avg_sq());
  }
}

/// Half-precision moments as float32, until they are stored back. LAMB computes its step twice from them, and a second
/// moment that float16 rounded to zero would change the second result.
template <typename Options>
class WideMoments {
 public:
  explicit WideMoments(std::vector<Reached<Options>>& reached) {
    for (auto& each : reached)
      for (at::Tensor* const moment : {&each.tensors.first, &each.tensors.second}) {
        if (moment->scalar_type() != at::kHalf && moment->scalar_type() != at::kBFloat16) continue;
        const at::Tensor stored = *moment;
        *moment = stored.to(at::kFloat);
        widened_.emplace_back(stored, *moment);
      }
  }
  void put_back() {
    for (auto& [stored, wide] : widened_) stored.copy_(wide);
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> widened_;
};

/// Counts a step of every group, with or without gradients: t of the corrections 1 - beta^t, which are equal for all
/// parameters of the group.
template <typename Options>
void count_group_steps(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    auto& options = static_cast<Options&>(group.options());
    options.step(options.step() + 1);
  }
}

}  // namespace accrue
