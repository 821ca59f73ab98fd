// SPDX-License-Identifier: Apache-2.0
// Rules for the parts of a spec that a target can express, and for the windows of the scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/export/code_export.h"

namespace accrue::export_detail {

/// Rule by which a script cuts epochs into windows. It has fewer cases than the window of a run.
struct ScriptWindows {
  std::int64_t steps = 1;        ///< N
  std::int64_t batches = 0;      ///< trained batches of an epoch
  std::int64_t micro_steps = 0;  ///< micro-steps of the run that updates contain
  bool flush = true;             ///< the end of an epoch closes a window
};
ScriptWindows script_windows(const RunPlan& plan);

/// Returns an error if the scripts cannot train this plan. Compares the plan's own window with the script's rule, step
/// by step.
Result<void> check_script(const RunPlan& plan);

/// Initial loss scale of a float16 model if the spec omits it; equal to the engine's DynamicScale.
constexpr double usual_loss_scale = 65536.0;

/// Length of the schedule in updates; none if it is not a whole number of them.
std::optional<std::int64_t> schedule_updates(const RunPlan& plan);

/// Returns every set key that the target cannot express, in the order of the field table.
std::vector<NotCarried> not_carried(const RunPlan& plan, CodeTarget target);

}  // namespace accrue::export_detail
