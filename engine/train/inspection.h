// SPDX-License-Identifier: Apache-2.0
// Where a run is stepped through: the places between the phases of a micro-step, and what a rank reports of itself
// where it stands. It only reads, so a run that was held ends with the weights of one that was not.
#pragma once

#include <functional>
#include <limits>

#include "train/training.h"

namespace accrue {

/// What the pass that has come to a place knows there.
struct PhaseFacts {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double loss = unknown;
  double weight = unknown;
  double factor = unknown;
  double clip = unknown;
};

/// The phase of this micro-step is done: holds here if the ranks are stepped to this place, and reports before it does.
/// `catch_up` is called only then.
void pass_phase(Training& training, StepPhase phase, const MicroPlan& plan,
                const std::function<PhaseFacts()>& catch_up);
/// Reports where this rank stands between micro-steps, before the one of this plan.
void report_held_before(Training& training, const MicroPlan& plan);

}  // namespace accrue
