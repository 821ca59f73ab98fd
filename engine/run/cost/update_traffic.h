// SPDX-License-Identifier: Apache-2.0
// Payload that a rank gives to the communicators in one update of a full window, call by call as the engine makes them.
#pragma once

#include <array>

#include "accrue/run/cost/rank_cost.h"

namespace accrue {

/// Gradients of a stage.
struct StageGradients {
  double numel = 0;       ///< of the flat layout, padding included
  double parameters = 0;  ///< number of tensors
  double on_rows = 0;     ///< elements that sequence parallelism sums over the tensor axis
  double tied = 0;        ///< elements of the token embedding that stages sum
  double positions = 0;   ///< elements of the position embedding that the first stages of an encoder and a decoder sum
};

using TrafficByAxis = std::array<AxisTraffic, 8>;  ///< by Axis

/// Traffic of a rank of the stage, before axes with equal groups are merged.
TrafficByAxis update_traffic(const RunSpec& spec, std::int64_t stage, const StageGradients& gradients);

}  // namespace accrue
