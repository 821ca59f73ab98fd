// SPDX-License-Identifier: Apache-2.0
// Operations of each pipeline stage in one accumulation window: forward and backward of every micro-step on every model
// chunk of the stage, and the transfers between stages. A rank runs its list from front to back. A window without a
// pipeline is the list of one stage, "F0 B0 F1 B1 ...".
//
// Problem: a blocking send waits for its receive, so two stages that first send to each other deadlock. Solution: the
// schedule gives only the order of computation. All stages are simulated together, and each list takes its transfers in
// the order in which they met. Such a list is one view of a common order, so it cannot deadlock with any kind of
// transfer. A send follows the operation that made its tensor. A receive comes just before the operation that needs it,
// unless the sender would be blocked otherwise.
// Source: Megatron-LM's schedules: all-forward-all-backward (GPipe), one-forward-one-backward, interleaved.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/fields/spec.h"

namespace accrue {

enum class PipelineSchedule { all_forward_all_backward, one_forward_one_backward, interleaved };

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t stages = 1;       ///< p
  std::int64_t micro_steps = 1;  ///< m, of the window
  std::int64_t chunks = 1;       ///< v, model parts per stage; 1 for one_forward_one_backward
  std::int64_t group = 0;        ///< micro-steps that pass a chunk before the next chunk's turn; 0 = stages
  bool operator==(const PipelineShape&) const = default;
};

enum class PipelineAction { forward, backward, send_output, receive_input, send_gradient, receive_gradient };
/// "forward", "send_output", ...
std::string_view to_string(PipelineAction action);

struct PipelineOperation {
  PipelineAction action = PipelineAction::forward;
  std::int64_t micro_step = 0;  ///< in the window, from 0
  std::int64_t chunk = 0;       ///< of this stage, from 0: part chunk * p + stage of the model
  std::int64_t peer = -1;       ///< the other stage of a transfer
  bool operator==(const PipelineOperation&) const = default;
};

std::string_view to_string(PipelineSchedule schedule);  ///< "one_forward_one_backward", ...

/// Schedule of a spec for a window of `micro_steps`. A window that does not fill the groups of the interleaved
/// schedule, as at the end of an epoch, runs all forwards first.
PipelineShape pipeline_shape(const ParallelSpec& parallel, std::int64_t micro_steps);

/// Returns one list per stage. Errors (config): a shape that the schedule does not support, with the rule.
Result<std::vector<std::vector<PipelineOperation>>> pipeline_schedule(const PipelineShape& shape);

/// Maximum number of forwards of a stage whose backward is still to come: the activations that it keeps, counted in
/// chunks.
std::int64_t pipeline_in_flight(const PipelineShape& shape, std::int64_t stage);
/// Fraction of a window's time that each stage idles if all stages are equally fast: (p - 1) / (m v + p - 1).
double pipeline_bubble(const PipelineShape& shape);

}  // namespace accrue
