// SPDX-License-Identifier: Apache-2.0
// What each pipeline stage does in one accumulation window, as a list of operations: forward and backward of every
// micro-step on every model chunk of the stage, and the transfers between stages. A rank runs its list from front to
// back; a window without a pipeline is the list of one stage, "F0 B0 F1 B1 ...".
//
// Problem: a blocking send waits for its receive, and two stages that send to each other first wait forever. Choice:
// only the order of computation is given by the schedule; all stages are played through together, and each list takes
// its transfers in the order in which they met there. A list so made is one view of a common order, so it cannot
// deadlock however transfers are carried out. A send follows the operation that made its tensor, a receive precedes the
// one that needs it, unless the sender could not go on otherwise.
// Source: Megatron-LM's schedules: all-forward-all-backward (GPipe), one-forward-one-backward, interleaved.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accrue/run/result.h"
#include "accrue/run/run_spec.h"

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

/// The schedule of a spec's windows, for one of so many micro-steps. One that does not fill the groups of the
/// interleaved schedule, as at an epoch's end, runs all forward first.
PipelineShape pipeline_shape(const ParallelSpec& parallel, std::int64_t micro_steps);

/// One list per stage. Errors (config): a shape that the schedule cannot have, with the rule.
Result<std::vector<std::vector<PipelineOperation>>> pipeline_schedule(const PipelineShape& shape);

/// Most forwards of a stage whose backward is still to come: the activations that it keeps, counted in chunks.
std::int64_t pipeline_in_flight(const PipelineShape& shape, std::int64_t stage);
/// Part of a window's time that each stage idles, where all stages take equally long: (p - 1) / (m v + p - 1).
double pipeline_bubble(const PipelineShape& shape);

}  // namespace accrue
