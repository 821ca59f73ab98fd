// SPDX-License-Identifier: Apache-2.0
// When each operation of a pipeline's window runs: the lists of pipeline_schedule() played with a clock. All stages
// take equally long, a transfer takes no time, a send does not wait, and a stage stands at a receive until its tensor
// has been made. A measured window fills the same struct, so that both sides of a comparison are counted by one rule.
#pragma once

#include <vector>

#include "accrue/run/pipeline_schedule.h"

namespace accrue {

/// What a micro-step takes on a whole stage; one of its v chunks takes the v-th part.
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

/// Blocks by stage, each stage's in the order in which it runs them.
struct PipelineTimeline {
  std::vector<std::vector<PipelineBlock>> lanes;

  double begin() const;
  double end() const;  ///< from begin(): the makespan
  /// Part of the time from the first block to the last one's end in which the stages do not compute.
  double bubble() const;
  /// Most forwards of a stage whose backward is still to come.
  std::int64_t stash(std::size_t stage) const;
  std::size_t blocks() const;
};

/// Errors: those of pipeline_schedule().
Result<PipelineTimeline> pipeline_timeline(const PipelineShape& shape, const PipelinePace& pace = {});

/// For each block, in the order of its lane: how many stages compute at some time while it runs, its own included.
std::vector<std::vector<std::int64_t>> stages_at_work(const PipelineTimeline& timeline);

}  // namespace accrue
