// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Throws std::invalid_argument on every rank where the ranks' lists differ in length, name, shape or dtype, naming the
/// first tensor that differs. Collective: the axis.
void verify_replicas(const NamedTensors& tensors, Communicator& axis);

/// Rank 0's values reach all ranks. Collective: the axis.
void broadcast_values(const NamedTensors& tensors, Communicator& axis);

}  // namespace accrue
