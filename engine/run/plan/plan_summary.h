// SPDX-License-Identifier: Apache-2.0
// The derived numbers of a plan as one JSON object.
#pragma once

#include "accrue/run/plan/run_plan.h"
#include "json_text.h"

namespace accrue {

Json plan_summary(const RunPlan& plan);

}  // namespace accrue
