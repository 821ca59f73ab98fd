// SPDX-License-Identifier: Apache-2.0
// Decides which computations of a pipeline window use threads of idle stages. A bubble leaves cores idle while others
// wait for one stage; if all stages share a host, those cores can help.
//
// The schedule alone decides, by a clock on which a backward takes twice as long as a forward. A computation borrows
// the threads of a stage that is idle from its begin to its end: before that stage's first forward, or after its last
// operation. So all ranks know the allocation without communication, and a run uses the same threads each time. On that
// clock no two computations share a thread. Stages that run early or late may share cores for a while.
//
// A rank with more than one thread of its own borrows none: its computations would alternate between two team sizes,
// and the OpenMP runtime ends and creates threads whenever a team of two or more changes its size.
#pragma once

#include <cstdint>
#include <vector>

#include "accrue/run/window/pipeline_schedule.h"

namespace accrue {

/// Cores and threads of the stages of a host.
struct StageHost {
  std::int64_t threads = 1;  ///< of a rank; if more than 1, none are lent
  std::int64_t ranks = 1;    ///< of a stage
  std::int64_t cores = 1;    ///< that the ranks may run on
};

/// A forward or a backward that uses more threads than its own rank has.
struct LentThreads {
  PipelineAction action = PipelineAction::forward;
  std::int64_t micro_step = 0;  ///< in the window, from 0
  std::int64_t chunk = 0;       ///< of the stage, from 0
  std::int64_t threads = 1;     ///< of each of the stage's ranks, its own included
  bool operator==(const LentThreads&) const = default;
};

/// Returns those of a stage, in the order of its list. Idle threads are shared evenly among the busy stages, up to the
/// number of cores. Errors: those of pipeline_schedule().
Result<std::vector<LentThreads>> pipeline_threads(const PipelineShape& shape, std::int64_t stage,
                                                  const StageHost& host);

}  // namespace accrue
