// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"
#include "accrue/comm/grad_sync.h"

namespace accrue {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Throws std::invalid_argument on every rank if the ranks' lists differ in length, name, shape, dtype or
/// requires_grad; the message names the first differing tensor. Throws it also if `options`, as text, differ.
/// Collective: the axis.
void verify_replicas(const NamedTensors& tensors, const std::string& options, Communicator& axis);

/// Copies rank 0's values to all ranks, with one broadcast per tensor. Collective: the axis.
void broadcast_values(const NamedTensors& tensors, Communicator& axis);
/// Does the same with one broadcast per type, for small tensors that are copied often. Collective: the axis.
void broadcast_packed(const NamedTensors& tensors, Communicator& axis);

/// Throws std::invalid_argument on every rank if a number differs, with the first rank whose number differs from rank
/// 0's. Every rank passes equally many. Collective: the axis.
void agree_on(const std::vector<NamedNumber>& numbers, Communicator& axis);

/// Returns the parameters that any rank's backward reached. `mine`: those of this rank; `reduced`: the reduced
/// gradients, equal on all ranks. A reduced gradient with a non-zero element proves that some rank reached it. Only for
/// gradients that are zero throughout, the ranks make one small reduction. Collective: the axis.
std::vector<bool> reached_by_any(std::vector<bool> mine, const std::vector<at::Tensor>& reduced, Communicator& axis);
/// Does the same without reduced gradients, by one reduction of flags on the device.
std::vector<bool> reached_by_any(const std::vector<bool>& mine, at::Device device, Communicator& axis);

}  // namespace accrue
