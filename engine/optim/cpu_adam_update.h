// SPDX-License-Identifier: Apache-2.0
// Common code of CPUAdam and HybridAdam: moments that may be in files, and the update.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/optim/param_state.h"
#include "optim/file_tier.h"
#include "optim/torch_updates.h"
#include "optim/update_rules.h"

namespace accrue {

/// Settings of the kernels from those of a group.
template <typename Options>
MomentsSettings adam_settings(const Options& by) {
  return {.lr = by.lr(),
          .beta1 = std::get<0>(by.betas()),
          .beta2 = std::get<1>(by.betas()),
          .eps = by.eps(),
          .weight_decay = by.weight_decay(),
          .adamw_mode = by.adamw_mode(),
          .bias_correction = by.bias_correction()};
}

template <typename Options>
void check_cpu_adam(const Options& by, const char* name) {
  require_not_negative(by.lr(), name, "lr");
  require_not_negative(by.eps(), name, "eps");
  require_not_negative(by.weight_decay(), name, "weight_decay");
  require_betas(by.betas(), name);
  require(by.nvme_offload_fraction() >= 0.0 && by.nvme_offload_fraction() <= 1.0, name,
          "nvme_offload_fraction is a part: at least 0 and at most 1");
}

/// Returns by place among all parameters the number of elements of each state that are in files: those of the first
/// floor(fraction * numel) elements of the parameters on the CPU. Upstream moves whole parameters only, each one that
/// still fits; here the fraction holds exactly, and one parameter may be in both places. The product is in double,
/// which counts elements exactly up to 2^53.
template <typename Options>
std::vector<std::int64_t> offloaded_elements(torch::optim::Optimizer& optimizer) {
  const double fraction = static_cast<const Options&>(optimizer.defaults()).nvme_offload_fraction();
  std::vector<std::int64_t> elements;
  double all = 0.0;
  for (const auto& group : optimizer.param_groups())
    for (const at::Tensor& each : group.params()) {
      elements.push_back(each.device().is_cpu() ? each.numel() : 0);
      all += static_cast<double>(elements.back());
    }
  auto left = static_cast<std::int64_t>(std::floor(fraction * all));
  for (std::int64_t& each : elements) {
    each = std::min(each, left);
    left -= each;
  }
  return elements;
}

/// Makes a state, or moves a loaded one to its place: a loaded tensor is in memory, and its values go into the mapped
/// pages. `in_files`: elements of each moment, from the first.
inline void place_moments(MomentsParamState& state, const at::Tensor& parameter, std::int64_t in_files,
                          const std::string& dir) {
  if (state.exp_avg().defined() && (in_files == 0 || state.in_files())) return;
  const auto placed = [&](const at::Tensor& loaded) {
    at::Tensor zeros = in_files > 0
                           ? tiered_zeros(parameter.numel(), in_files, parameter.options().requires_grad(false), dir)
                                 .view(parameter.sizes())
                           : zeros_for(parameter);
    if (loaded.defined()) zeros.copy_(loaded);
    return zeros;
  };
  const at::Tensor first = placed(state.exp_avg()), second = placed(state.exp_avg_sq());
  state.exp_avg(first);
  state.exp_avg_sq(second);
  state.in_files(in_files > 0);
}

/// Calls update(parameters, path) with groups of successive parameters, up to a window of offloaded states each, and
/// reads the next window ahead. Before that every parameter's t is advanced, and m and v have their places: zeros of
/// the parameter's shape in the first update.
template <typename Options, typename Update>
void step_with_files(torch::optim::Optimizer& optimizer, const char* name, const Update& update) {
  auto reached = reached_parameters<Options>(optimizer, name);
  const auto in_files = offloaded_elements<Options>(optimizer);
  const auto& dir = static_cast<const Options&>(optimizer.defaults()).nvme_offload_dir();
  const std::string folder = dir ? *dir : std::filesystem::temp_directory_path().string();
  for (auto& each : reached)  // all first: if the disk is full, nothing has changed
    place_moments(state_of<MomentsParamState>(optimizer, each.parameter), each.parameter, in_files[each.place], folder);
  std::vector<std::vector<Reached<Options>>> windows(1);
  std::int64_t held = 0;
  for (auto& each : reached) {
    auto& state = state_of<MomentsParamState>(optimizer, each.parameter);
    state.step(state.step() + 1);
    each.tensors.first = packed(state.exp_avg());
    each.tensors.second = packed(state.exp_avg_sq());
    // A window ends behind the parameter that fills it: parameters are not cut.
    if (held > elements_per_tier_window) {
      windows.emplace_back();
      held = 0;
    }
    windows.back().push_back(each);
    held += in_files[each.place];
  }
  const auto advise = [&](std::size_t window, const auto& how) {
    if (window >= windows.size()) return;
    for (const auto& each : windows[window])
      if (const FlatRange part{0, in_files[each.place]}; part.size > 0)
        for (const at::Tensor& state : {each.tensors.first, each.tensors.second}) how(state, part);
  };
  for (std::size_t window = 0; window < windows.size(); ++window) {
    // The disk reads the next window while this one is computed.
    advise(window + 1, will_need);
    by_path(windows[window], update);
    advise(window, not_soon);
  }
}

}  // namespace accrue
