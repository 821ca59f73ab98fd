// SPDX-License-Identifier: Apache-2.0
// Start and end of each operation of a pipeline window: the lists of pipeline_schedule(), simulated with a clock. All
// stages take equally long, transfers take no time, sends do not wait, and a receive waits until its tensor was made. A
// measured window fills the same struct, so one rule evaluates both.
#pragma once

#include <vector>

#include "accrue/run/window/pipeline_schedule.h"

namespace accrue {

/// Time of a micro-step on a whole stage; one of its v chunks takes 1 / v of it.
struct PipelinePace {
  double forward = 1.0;
  double backward = 2.0;
  bool operator==(const PipelinePace&) const = default;
};

/// A forward or a backward.
struct PipelineBlock {
  PipelineAction action = PipelineAction::forward;
  std::int64_t micro_step = 0;  ///< in the window, from 0
  std::int64_t chunk = 0;       ///< of the stage, from 0
  double begin = 0.0;
  double end = 0.0;
  bool operator==(const PipelineBlock&) const = default;
};

/// Blocks by stage, in each stage's order of execution.
struct PipelineTimeline {
  std::vector<std::vector<PipelineBlock>> lanes;

  double begin() const;
  double end() const;  ///< from begin(): the makespan
  /// Fraction of the time from the first block to the end of the last one in which the stages do not compute.
  double bubble() const;
  /// Maximum number of forwards of a stage whose backward is still to come.
  std::int64_t stash(std::size_t stage) const;
  std::size_t blocks() const;
};

/// Errors: those of pipeline_schedule().
Result<PipelineTimeline> pipeline_timeline(const PipelineShape& shape, const PipelinePace& pace = {});

/// For each block, in the order of its lane: the number of stages that compute at some time while it runs, including
/// its own.
std::vector<std::vector<std::int64_t>> stages_at_work(const PipelineTimeline& timeline);

}  // namespace accrue
