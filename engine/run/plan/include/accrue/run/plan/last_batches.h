// SPDX-License-Identifier: Apache-2.0
// Treatment of the batches that fill no window, found by walking the plan to the end of an epoch and of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Fate of the last batches of an epoch or of the run.
enum class BatchFate {
  full_window,  ///< they fill a window: there is no tail
  short_update,
  carried,  ///< they wait in the gradients; the next epoch completes their window
  left_in_gradients,
  never_seen,
  fetched_and_dropped,
  filled_up,  ///< their window is completed by repeating the epoch's first batches
};
/// "full_window", "short_update", ...
std::string_view to_string(BatchFate fate);

/// Batches after the last full window of an epoch, and their fate.
struct LastBatches {
  BatchFate fate = BatchFate::full_window;
  std::int64_t epoch = 0;            ///< from 0
  std::int64_t first_batch = 0;      ///< in its epoch, from 0
  std::int64_t batches = 0;          ///< number of batches; 0: no tail
  std::int64_t window_size = 0;      ///< micro-steps of the update that uses them; 0: none does
  std::optional<Division> division;  ///< of the last trained one
  bool ends_run = false;             ///< they are the run's last
  std::string text;                  ///< one sentence
};

/// Returns the fates of the first epoch, and of the run if it ends elsewhere. Empty for a plan without batches.
std::vector<LastBatches> find_last_batches(const RunPlan& plan);
/// Returns the divisor of a micro-step's loss or of its window's sum: "by 4", "by its own samples". `own`: the
/// possessive, "its own".
std::string division_text(const Division& division, std::string_view own);

}  // namespace accrue
