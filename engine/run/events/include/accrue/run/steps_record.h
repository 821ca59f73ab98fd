// SPDX-License-Identifier: Apache-2.0
// Changes of N in a run's events: one interpretation for the supervisor, the studio, show and compare.
#pragma once

#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_event.h"

namespace accrue {

/// Adds a manual change of N to shape.steps_set, and removes the changes that a resume from an earlier update discards.
/// An event that every rank reports counts once, at the first. Returns true if the record has changed.
bool take_steps(WindowShape& shape, const RunEvent& event);

}  // namespace accrue
