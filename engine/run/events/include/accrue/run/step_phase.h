// SPDX-License-Identifier: Apache-2.0
// The phases of a micro-step and of the boundary after it, in the order in which a rank passes them. A run that is
// stepped through holds between two of them, all ranks at the same place.
#pragma once

#include <string_view>

namespace accrue {

enum class StepPhase {
  none,      ///< between two micro-steps
  forward,   ///< the loss is known
  scale,     ///< and what it is multiplied by
  backward,  ///< the micro-step's gradients are in the sum
  reduce,    ///< the ranks hold the same sum
  unscale,   ///< what the sum is multiplied by is known
  clip,      ///< and what clipping makes of it
  step,      ///< the weights have moved
  schedule,  ///< the next update's learning rate is in force
  zero       ///< the gradients are cleared, the update is reported
};

/// "forward", "scale", ...; empty for none.
std::string_view to_string(StepPhase phase);

}  // namespace accrue
