// SPDX-License-Identifier: Apache-2.0
// Reasons why one batch has another gradient than its micro-steps together, if the model or its loss belongs to a
// plug-in library. Such code is unknown, so a reason is given only if it was demonstrated: both gradients are
// recomputed on a float64 copy with one cause removed, and are then equal.
// Thread: training. Collective: the data axis, all functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "accrue/run/plan/exactness.h"
#include "train/training.h"

namespace accrue {

/// This rank's part of a micro-step, and the micro-step that keys its random numbers.
struct MicroSamples {
  std::vector<std::int64_t> samples;
  std::int64_t micro_step = 0;
};

/// For a window whose gradient is the correctly divided sum of its micro-steps' gradients. `found`: that gradient, in
/// float64 and flat. Returns unexplained if no cause could be demonstrated, or the copy could not be computed.
ExactnessReason shown_reason(Training& training, const std::vector<MicroSamples>& window, const at::Tensor& found,
                             double tolerance);
/// For a window whose gradient is no known combination of its micro-steps' gradients: own_buffers, unrepeatable or
/// unexplained.
ExactnessReason shown_change(Training& training, const std::vector<MicroSamples>& window);

/// Returns the largest relative difference due to rounding, if gradients with norms that add up to `lengths` have a sum
/// with the norm `length`: rounding errors do not cancel in the sum like the gradients do.
double rounding_bound(double tolerance, double lengths, double length);

}  // namespace accrue
