// SPDX-License-Identifier: Apache-2.0
// What becomes of the batches that fill no window, found by walking the plan to the end of an epoch and of the run.
#pragma once

#include "accrue/run/dialect_comparison.h"

namespace accrue {

/// Of the first epoch, and of the run where it ends elsewhere. Empty for a plan without batches.
std::vector<LastBatches> find_last_batches(const RunPlan& plan);
/// The last micro-step of the first epoch; 0 where the run ends before.
std::int64_t first_epoch_end(const RunPlan& plan);
/// "4", "2.5"
std::string number_text(double number);

}  // namespace accrue
