// SPDX-License-Identifier: Apache-2.0
// Moments for optimizers that count the steps of a group.
#pragma once

#include <vector>

#include "accrue/optim/param_state.h"
#include "optim/torch_updates.h"

namespace accrue {

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

/// Counts a step of every group, whether it has gradients or not.
template <typename Options>
void count_group_steps(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    auto& options = static_cast<Options&>(group.options());
    options.step(options.step() + 1);
  }
}

}  // namespace accrue
