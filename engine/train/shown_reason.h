// SPDX-License-Identifier: Apache-2.0
// Why one batch has another gradient than its micro-steps together, where the model or its loss is a plug-in library's.
// Nothing is known of such code, so a reason is given only where it was shown: the gradient is computed both ways again
// on a float64 copy with one cause removed, and the two are then equal.
// Thread: training. Collective: the data axis, all functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "accrue/run/exactness.h"
#include "train/training.h"

namespace accrue {

/// What this rank's part of a micro-step holds, and the micro-step by which its random numbers are drawn.
struct MicroSamples {
  std::vector<std::int64_t> samples;
  std::int64_t micro_step = 0;
};

/// For a window whose gradient is the sum of its micro-steps' gradients rightly divided. `found`: that gradient, in
/// float64 and flat. unexplained: no cause could be shown, or the copy could not be computed.
ExactnessReason shown_reason(Training& training, const std::vector<MicroSamples>& window, const at::Tensor& found,
                             double tolerance);
/// For a window whose gradient is no known combination of its micro-steps' gradients: own_buffers, unrepeatable or
/// unexplained.
ExactnessReason shown_change(Training& training, const std::vector<MicroSamples>& window);

/// The largest relative difference that rounding accounts for, where gradients of lengths that add up to `lengths` have
/// a sum of the length `length`: what cancels in the sum does not cancel in its rounding.
double rounding_bound(double tolerance, double lengths, double length);

}  // namespace accrue
