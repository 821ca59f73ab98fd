// SPDX-License-Identifier: Apache-2.0
// State of LibTorch's optimizers as tensors and plain values by name. LibTorch itself saves an optimizer only as an
// archive, which is unpickled and may carry code; only ArchivedOptimizer reads one, which its caller has opened.
//
//   kind                 the optimizer's name, as bytes
//   group.G.parameters   number of parameters of group G
//   group.G.OPTION       lr, betas, weight_decay, ...
//   state.P.FIELD        step, exp_avg, ...; P counts parameters through all groups; none before its first update
#pragma once

#include <torch/optim/optimizer.h>

#include "accrue/accumulation/base_optimizer.h"

namespace accrue {

/// The optimizer's kind and groups alone. Errors: as optimizer_state().
StateDict optimizer_options(const torch::optim::Optimizer& optimizer);

/// Copies the state. Errors: throws std::invalid_argument for an optimizer that is not LibTorch's own.
StateDict optimizer_state(const torch::optim::Optimizer& optimizer);

/// Errors: throws std::invalid_argument that names a missing or mismatched entry; nothing is changed then.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const StateDict& state);

/// Prints the optimizer's name and every group's options, like Python's optimizers.
std::string optimizer_text(const torch::optim::Optimizer& optimizer);

}  // namespace accrue
