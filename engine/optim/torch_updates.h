// SPDX-License-Identifier: Apache-2.0
// Common code of the optimizers for any program: the parameters that a step reaches, their form for the passes, and
// options that no update can use. Everything is checked before anything changes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "optim/update_passes.h"

namespace accrue {

/// Throws std::invalid_argument("CLASS: option what") unless it holds.
void require(bool holds, const char* optimizer, const std::string& what);
/// Checks rates, decay and similar options, which must not be negative.
void require_not_negative(double value, const char* optimizer, const char* option);
void require_betas(const std::tuple<double, double>& betas, const char* optimizer);

/// A parameter with a gradient, both of the same shape. The passes take them as flat memory of numel() elements.
template <typename Options>
struct Reached {
  at::Tensor parameter;
  UpdateTensors tensors;  ///< contiguous; the state is not yet filled in
  Options* options = nullptr;
  std::size_t group = 0;
  std::size_t place = 0;  ///< among the parameters of all groups
};

/// Throws std::invalid_argument for a pair that cannot be updated together.
void check_pair(const at::Tensor& parameter, const at::Tensor& grad, const char* optimizer);

/// Returns the parameters of all groups that have a gradient.
template <typename Options>
std::vector<Reached<Options>> reached_parameters(torch::optim::Optimizer& optimizer, const char* name) {
  std::vector<Reached<Options>> reached;
  std::size_t place = 0;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    auto& group = optimizer.param_groups()[g];
    for (const at::Tensor& parameter : group.params()) {
      const std::size_t at = place++;
      const at::Tensor& grad = parameter.grad();
      if (!grad.defined()) continue;
      check_pair(parameter, grad, name);
      reached.push_back({parameter,
                         {.params = parameter.detach().contiguous(), .grads = grad.detach().contiguous()},
                         &static_cast<Options&>(group.options()),
                         g,
                         at});
    }
  }
  return reached;
}

template <typename State>
State& state_of(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
  if (!state) state = std::make_unique<State>();
  return static_cast<State&>(*state);
}

/// Returns zeros of the parameter's shape, type and device, contiguous.
at::Tensor zeros_for(const at::Tensor& parameter);
/// Returns a loaded state in contiguous form.
inline at::Tensor packed(at::Tensor& state) {
  if (!state.is_contiguous()) state = state.contiguous();
  return state;
}

/// Copies back parameters that are not contiguous and were updated as copies: contiguous() copies those alone, so every
/// other parameter was updated in place.
template <typename Options>
void put_back(const std::vector<Reached<Options>>& reached) {
  for (const Reached<Options>& each : reached)
    if (!each.parameter.is_contiguous()) each.parameter.detach().copy_(each.tensors.params);
}

/// Calls update(tensors of one path, path) for the parameters on the CPU, and for those on each device.
template <typename Options, typename Update>
void by_path(const std::vector<Reached<Options>>& reached, const Update& update) {
  std::vector<UpdatePath> paths;
  for (const Reached<Options>& each : reached)
    if (const UpdatePath path = path_of(each.parameter.device()); !std::ranges::count(paths, path))
      paths.push_back(path);
  for (const UpdatePath path : paths) {
    std::vector<Reached<Options>> those;
    for (const Reached<Options>& each : reached)
      if (path_of(each.parameter.device()) == path) those.push_back(each);
    update(those, path);
  }
  put_back(reached);
}

/// Returns the closure's loss, with gradients; undefined without a closure.
at::Tensor loss_of(const torch::optim::Optimizer::LossClosure& closure);

/// Checks that the groups' options are of the optimizer's own kind and pass `check`.
template <typename Options, typename Check>
void check_groups(torch::optim::Optimizer& optimizer, const char* name, const Check& check) {
  check(static_cast<const Options&>(optimizer.defaults()));
  for (auto& group : optimizer.param_groups()) {
    const auto* const options = dynamic_cast<const Options*>(&group.options());
    require(options != nullptr, name, "a group's options are of another optimizer");
    check(*options);
  }
}

/// Factor of the gradients; a div_scale that is not above 0 means none, as upstream.
inline double scale_of(double div_scale) {
  return div_scale > 0.0 ? 1.0 / div_scale : 1.0;
}

}  // namespace accrue
