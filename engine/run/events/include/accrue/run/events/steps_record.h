// SPDX-License-Identifier: Apache-2.0
// Changes of N in a run's events: one interpretation for the supervisor, the studio, show and compare.
#pragma once

#include "accrue/run/events/run_event.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// Adds a manual change of N to shape.steps_set, and removes the changes that a resume from an earlier update discards.
/// An event that every rank reports counts once, at the first. Returns true if the record has changed.
bool take_steps(WindowShape& shape, const RunEvent& event);

}  // namespace accrue
