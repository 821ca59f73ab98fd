// SPDX-License-Identifier: GPL-3.0-or-later
// The current set-up in several ways: in each dialect, with each optimizer, under several seeds, and as other products
// of micro-batch, N and ranks. What a panel shows of them, and their runs.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "accrue/run/whatif/dialect_comparison.h"
#include "accrue/run/whatif/iso_batch.h"
#include "compared_runs.h"

namespace accrue::ui {

using DialectPlans = PlanAnswers<DialectComparison>;
using IsoPlans = PlanAnswers<std::vector<IsoPlan>>;

// Pure. The question must have data.
DialectComparison compareDialects(const PlanFollower::Question& asked);
std::vector<IsoPlan> planProducts(const PlanFollower::Question& asked);
std::vector<RunWay> inDialects(const PlanFollower::Question& asked);
std::vector<RunWay> withOptimizers(const PlanFollower::Question& asked);
std::vector<RunWay> asProducts(const PlanFollower::Question& asked);
/// Under the seed of the spec, and the following ones. None if there is no count.
RunWays underSeeds(std::optional<int> count);

/// Returns the first error for which a dialect cannot run the spec; empty if it can.
QString refusalOf(const DialectPlan& answer);
/// "micro 2 x N 8 x 2 ranks"
QString wayText(const IsoWay& way);

}  // namespace accrue::ui
