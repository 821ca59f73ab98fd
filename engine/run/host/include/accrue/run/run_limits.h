// SPDX-License-Identifier: Apache-2.0
// What a run needs of the limits that a shell sets (ulimit) and its processes inherit.
#pragma once

#include <cstdint>

#include "accrue/run/result.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// Files that the supervisor, or one of so many ranks, may have open at once.
std::int64_t needed_open_files(std::int64_t ranks);
/// Bytes that so many ranks of one host share before they hold a model. To the system that memory is a file.
std::int64_t needed_file_bytes(std::int64_t ranks);
/// Errors (device): a limit of this process is too low for the run; it says which, its value and what is needed.
Result<void> check_limits(const RunPlan& plan);

}  // namespace accrue
