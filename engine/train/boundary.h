// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accrue/run/base/result.h"
#include "accrue/train/rank_channel.h"
#include "train/training.h"

namespace accrue {

/// Ends a window: agree, check, normalise, clip, step, advance the schedule, clear, report. Returns the next requests,
/// equal on all ranks. Collective: the world.
/// Errors (numerics): loss or gradient not finite under the stop rule, or the pause rule without a user to answer; the
/// parameters are unchanged.
Result<BoundaryRequests> pass_boundary(Training& training, const WindowPass& pass);

}  // namespace accrue
