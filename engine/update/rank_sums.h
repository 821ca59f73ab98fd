// SPDX-License-Identifier: Apache-2.0
// Sums of a few numbers over ranks. Every rank gathers every rank's row and adds the rows in rank order, so the sums
// are equal to the last bit on all ranks and over all backends. NaN and infinity arrive unchanged.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>

#include "accrue/comm/communicator.h"

namespace accrue {

/// Returns the rows of all ranks, float64 [ranks, columns]. Collective, like the sums: the axis.
at::Tensor rows_of_ranks(Communicator& axis, std::span<const double> row);
/// Sums element by element. The planner counts three numbers for each sum (update_traffic.cpp).
std::array<double, 3> sum_over_ranks(Communicator& axis, const std::array<double, 3>& values);
inline double sum_over_ranks(Communicator& axis, double value) {
  return sum_over_ranks(axis, std::array{value, 0.0, 0.0})[0];
}

}  // namespace accrue
