// SPDX-License-Identifier: Apache-2.0
// Requirements of a run on the limits that a shell sets (ulimit) and its processes inherit.
#pragma once

#include <cstdint>

#include "accrue/run/base/result.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Files that the supervisor, or one of `ranks` ranks, may have open at once.
std::int64_t needed_open_files(std::int64_t ranks);
/// Bytes that `ranks` ranks of one host share before they hold a model. The system counts that memory as a file.
std::int64_t needed_file_bytes(std::int64_t ranks);
/// Errors (device): a limit of this process is too low for the run, with its name, its value and the required value.
Result<void> check_limits(const RunPlan& plan);

}  // namespace accrue
