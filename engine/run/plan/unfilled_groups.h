// SPDX-License-Identifier: Apache-2.0
// Windows of an interleaved pipeline that do not fill its groups: the ranks run all their forwards first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Returns the distinct sizes of such windows, ascending: those of a schedule of lengths, at the end of an epoch and at
/// the end of the run.
std::vector<std::int64_t> unfilled_groups(const RunPlan& plan);
/// Returns the same as a sentence; empty if every window fills its groups.
std::string unfilled_groups_text(const RunPlan& plan);

}  // namespace accrue
