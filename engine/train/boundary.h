// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/result.h"
#include "accrue/train/rank_channel.h"
#include "train/training.h"

namespace accrue {

/// The end of a window: agree, check, normalise, clip, step, move the schedule, clear, report. Answers what is
/// requested next, equal on all ranks. Collective: the world.
/// Errors (numerics): loss or gradient not finite under the stop rule, or the pause rule where no user can answer; the
/// parameters are as they were before.
Result<BoundaryRequests> pass_boundary(Training& training, const WindowPass& pass);

}  // namespace accrue
