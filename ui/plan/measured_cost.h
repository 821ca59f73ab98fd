// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/plan_check.h"
#include "accrue/run/rank_cost.h"

namespace accrue::ui {

/// What a rank holds of the run, without what its process costs in any case.
std::int64_t heldBytes(const RankCost& cost);
/// What the fullest ranks of a run were counted to hold; empty before they were.
std::optional<RankCost> measuredCost(const std::vector<PlanFigure>& figures);

}  // namespace accrue::ui
