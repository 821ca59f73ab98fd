// SPDX-License-Identifier: Apache-2.0
// What a target can hold of a spec, and how the scripts form windows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/code_export.h"

namespace accrue::export_detail {

/// The rule by which a script cuts epochs into windows. It has fewer cases than the window of a run.
struct ScriptWindows {
  std::int64_t steps = 1;        ///< N
  std::int64_t batches = 0;      ///< of an epoch, that are trained on
  std::int64_t micro_steps = 0;  ///< of the run, that updates hold
  bool flush = true;             ///< an epoch's end closes a window
};
ScriptWindows script_windows(const RunPlan& plan);

/// Why the scripts cannot train this plan; empty where they can. Walks the plan's own window beside the script's rule.
Result<void> check_script(const RunPlan& plan);
/// The schedule position of an update (from 0), as Python: "update * RANKS".
std::string position_code(const RunPlan& plan);

/// The first loss scale of a float16 model whose spec leaves it out; the engine's DynamicScale has the same.
constexpr double usual_loss_scale = 65536.0;

/// The schedule's length in updates; none where it is no whole number of them.
std::optional<std::int64_t> schedule_updates(const RunPlan& plan);

/// Every key that is set and that the target does not hold, in the order of the field table.
std::vector<NotCarried> not_carried(const RunPlan& plan, CodeTarget target);

}  // namespace accrue::export_detail
