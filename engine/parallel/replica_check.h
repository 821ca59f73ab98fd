// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"

namespace accrue {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Throws std::invalid_argument on every rank where the ranks' lists differ in length, name, shape, dtype or
/// requires_grad, naming the first tensor that differs, or where `options`, as text, differ. Collective: the axis.
void verify_replicas(const NamedTensors& tensors, const std::string& options, Communicator& axis);

/// Rank 0's values reach all ranks: one broadcast a tensor. Collective: the axis.
void broadcast_values(const NamedTensors& tensors, Communicator& axis);
/// The same by one broadcast a type: for small tensors, often. Collective: the axis.
void broadcast_packed(const NamedTensors& tensors, Communicator& axis);

/// Throws std::invalid_argument on every rank, naming the first rank whose values differ from rank 0's. Collective: the
/// axis, as many values on every rank.
void agree_on(const std::string& what, const std::vector<std::int64_t>& values, Communicator& axis);

/// Parameters that some rank's backward reached, where `mine` are those that this rank's did and `reduced` their
/// reduced gradients. A gradient that is not zero throughout says so itself, to all ranks alike; only where one is zero
/// the ranks ask each other, by one small reduction. Collective: the axis.
std::vector<bool> reached_by_any(std::vector<bool> mine, const std::vector<at::Tensor>& reduced, Communicator& axis);

}  // namespace accrue
