// SPDX-License-Identifier: Apache-2.0
// What a rank gives to the communicators in one update of a full window, call by call as the engine makes them.
#pragma once

#include <array>

#include "accrue/run/rank_cost.h"

namespace accrue {

/// What a stage's gradients are made of.
struct StageGradients {
  double numel = 0;       ///< of the flat layout, padding included
  double parameters = 0;  ///< how many tensors
  double on_rows = 0;     ///< numbers that sequence parallelism sums over the tensor axis
  double tied = 0;        ///< numbers of the token embedding that stages add up
  double positions = 0;   ///< numbers of the positions that the first stages of an encoder and a decoder add up
};

using TrafficByAxis = std::array<AxisTraffic, 8>;  ///< by Axis

/// Of a rank of that stage, before axes with equal groups are put together.
TrafficByAxis update_traffic(const RunSpec& spec, std::int64_t stage, const StageGradients& gradients);

}  // namespace accrue
