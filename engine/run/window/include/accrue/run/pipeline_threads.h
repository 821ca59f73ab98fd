// SPDX-License-Identifier: Apache-2.0
// Which computations of a pipeline's window use threads of stages that stand idle. A bubble leaves cores without work
// while others wait for one stage; where all stages share a host, those cores need not stand still.
//
// The schedule alone decides, by a clock on which a backward takes twice a forward: a computation is lent threads where
// a stage is idle from its begin to its end, as before the first forward has passed, or after the last stage is done.
// So all ranks know without a word who uses what, and a run uses the same threads each time; on that clock no two use
// the same. Where stages run ahead or behind, threads may for a while share cores.
//
// A rank with more than one thread of its own is lent none: each of its computations would alternate between two team
// sizes, and the OpenMP runtime ends and creates threads wherever a team of two or more changes its size.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/run/pipeline_schedule.h"

namespace accrue {

/// What the stages compute on, where all of them share a host.
struct StageHost {
  std::int64_t threads = 1;  ///< of a rank; more than 1: none are lent
  std::int64_t ranks = 1;    ///< of a stage
  std::int64_t cores = 1;    ///< that the ranks may run on
};

/// A forward or a backward that uses more threads than its rank's own.
struct LentThreads {
  PipelineAction action = PipelineAction::forward;
  std::int64_t micro_step = 0;  ///< in the window, from 0
  std::int64_t chunk = 0;       ///< of the stage, from 0
  std::int64_t threads = 1;     ///< of each of the stage's ranks, its own included
  bool operator==(const LentThreads&) const = default;
};

/// Those of a stage, in the order of its list. Idle threads are shared evenly among the stages that compute, and no
/// more are used than there are cores. Errors: those of pipeline_schedule().
Result<std::vector<LentThreads>> pipeline_threads(const PipelineShape& shape, std::int64_t stage,
                                                  const StageHost& host);

}  // namespace accrue
