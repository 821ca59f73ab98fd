// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/record/plan_check.h"

namespace accrue::ui {

/// Memory of a rank without the fixed cost of its process.
std::int64_t heldBytes(const RankCost& cost);
/// Measured memory of the fullest ranks of a run; empty before it is known.
std::optional<RankCost> measuredCost(const std::vector<PlanFigure>& figures);

}  // namespace accrue::ui
