// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/result.h"
#include "accrue/train/event_sink.h"
#include "train/training.h"

namespace accrue {

/// The end of a window: agree, check, normalise, clip, step, move the schedule, clear, report. Answers what the ranks
/// wish to do next, equal on all of them. Collective: the world.
/// Errors (numerics): loss or gradient not finite under the stop rule, or the pause rule where no user can answer; the
/// parameters are as they were before.
Result<BoundaryWishes> pass_boundary(Training& training, const WindowPass& pass);

}  // namespace accrue
