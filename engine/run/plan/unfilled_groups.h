// SPDX-License-Identifier: Apache-2.0
// Windows of an interleaved pipeline that do not fill its groups: the ranks run them all forward first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accrue/run/run_plan.h"

namespace accrue {

/// How many micro-steps such windows have, ascending, each number once: those of a schedule of lengths, at the end of
/// an epoch and at the end of the run.
std::vector<std::int64_t> unfilled_groups(const RunPlan& plan);
/// The same as a sentence; empty where every window fills its groups.
std::string unfilled_groups_text(const RunPlan& plan);

}  // namespace accrue
