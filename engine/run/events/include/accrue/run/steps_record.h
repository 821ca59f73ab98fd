// SPDX-License-Identifier: Apache-2.0
// What a run's events say about its N: one reading, shared by the supervisor, the studio, show and compare.
#pragma once

#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_event.h"

namespace accrue {

/// Takes a change of N by hand into shape.steps_set, and out of it the changes that a resume from an earlier update
/// gives up. Events that all ranks tell count once, from the first. True if the record has changed.
bool take_steps(WindowShape& shape, const RunEvent& event);

}  // namespace accrue
