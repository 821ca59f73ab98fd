// SPDX-License-Identifier: Apache-2.0
// Single-stepping: the places between the phases of a micro-step, and a rank's report of its state there. It only
// reads, so a run that was held ends with the same weights as one that was not.
#pragma once

#include <functional>
#include <limits>

#include "train/training.h"

namespace accrue {

/// Values known at a place.
struct PhaseFacts {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double loss = unknown;
  double weight = unknown;
  double factor = unknown;
  double clip = unknown;
};

/// Ends a phase of this micro-step: if the ranks are stepped to this place, reports and holds here. `catch_up` is
/// called only then.
void pass_phase(Training& training, StepPhase phase, const MicroPlan& plan,
                const std::function<PhaseFacts()>& catch_up);
/// Reports this rank's state between micro-steps, before that of this plan.
void report_held_before(Training& training, const MicroPlan& plan);

}  // namespace accrue
