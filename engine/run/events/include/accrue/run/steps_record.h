// SPDX-License-Identifier: Apache-2.0
// What a run's events say of its N: the one fold that the supervisor, the studio, show and compare read them by.
#pragma once

#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_event.h"

namespace accrue {

/// Takes a change of N by hand into shape.steps_set, and out of it the changes that a resume from an earlier update
/// gives up. Events that all ranks tell count once, from the first. True where the record is another now.
bool take_steps(WindowShape& shape, const RunEvent& event);

}  // namespace accrue
