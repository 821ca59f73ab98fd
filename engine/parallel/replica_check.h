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
/// requires_grad, naming the first tensor that differs, or where `options`, as text, differ. Collective: the axis.
void verify_replicas(const NamedTensors& tensors, const std::string& options, Communicator& axis);

/// Copies rank 0's values to all ranks: one broadcast a tensor. Collective: the axis.
void broadcast_values(const NamedTensors& tensors, Communicator& axis);
/// The same by one broadcast a type: for small tensors, often. Collective: the axis.
void broadcast_packed(const NamedTensors& tensors, Communicator& axis);

/// Throws std::invalid_argument on every rank where a number differs, naming the first rank whose differs from rank
/// 0's. Every rank passes equally many. Collective: the axis.
void agree_on(const std::vector<NamedNumber>& numbers, Communicator& axis);

/// Which parameters any rank's backward reached; `mine`: which ones this rank's did; `reduced`: the reduced gradients,
/// equal on all ranks. A reduced gradient with a non-zero element proves that some rank reached it; only for those that
/// are zero throughout the ranks ask each other, by one small reduction. Collective: the axis.
std::vector<bool> reached_by_any(std::vector<bool> mine, const std::vector<at::Tensor>& reduced, Communicator& axis);
/// The same where no reduced gradient proves anything: by one reduction of flags, on the device.
std::vector<bool> reached_by_any(const std::vector<bool>& mine, at::Device device, Communicator& axis);

}  // namespace accrue
