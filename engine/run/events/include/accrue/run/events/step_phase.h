// SPDX-License-Identifier: Apache-2.0
// Phases of a micro-step and of the boundary after it, in order of execution. A run in single steps pauses between two
// of them, with all ranks at the same place.
#pragma once

#include <string_view>

namespace accrue {

enum class StepPhase {
  none,      ///< between two micro-steps
  forward,   ///< the loss is known
  scale,     ///< the factor of the loss is known
  backward,  ///< the micro-step's gradients are in the sum
  reduce,    ///< the ranks hold the same sum
  unscale,   ///< the factor of the sum is known
  clip,      ///< the gradient is clipped
  step,      ///< the weights are updated
  schedule,  ///< the next update's learning rate is in force
  zero       ///< the gradients are cleared and the update is reported
};

/// Returns "forward", "scale", ...; empty for none.
std::string_view to_string(StepPhase phase);

}  // namespace accrue
