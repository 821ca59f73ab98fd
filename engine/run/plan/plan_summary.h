// SPDX-License-Identifier: Apache-2.0
// The derived numbers of a plan as one JSON object.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "accrue/run/run_plan.h"

namespace accrue {

nlohmann::ordered_json plan_summary(const RunPlan& plan);

}  // namespace accrue
