// SPDX-License-Identifier: GPL-3.0-or-later
// The current set-up in several ways: in each dialect, with each optimizer, under several seeds, and as other products
// of micro-batch, N and ranks. For each: the computed plans, and its runs.
#pragma once

#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/whatif/dialect_comparison.h"
#include "accrue/run/whatif/iso_batch.h"
#include "accrue/run/whatif/optimizer_comparison.h"
#include "compared_runs.h"
#include "document/plan_follower.h"

namespace accrue::ui {

struct SeedPlan {
  std::int64_t seed = 0;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;
};

using DialectPlans = PlanAnswers<DialectComparison>;
using OptimizerPlans = PlanAnswers<std::vector<OptimizerPlan>>;
using SeedPlans = PlanAnswers<std::vector<SeedPlan>>;
using IsoPlans = PlanAnswers<std::vector<IsoPlan>>;

// Pure. The question must have data.
DialectComparison inDialects(const PlanFollower::Question& asked);
std::vector<OptimizerPlan> withOptimizers(const PlanFollower::Question& asked);
/// The seed of the spec, and the following ones.
std::vector<SeedPlan> underSeeds(const PlanFollower::Question& asked, int count);
std::vector<IsoPlan> asProducts(const PlanFollower::Question& asked);

std::vector<RunWay> waysOf(const DialectComparison& comparison);
std::vector<RunWay> waysOf(const std::vector<OptimizerPlan>& plans);
std::vector<RunWay> waysOf(const std::vector<SeedPlan>& plans);
/// Those that are wanted and that preflight accepts.
std::vector<RunWay> waysOf(const std::vector<IsoPlan>& plans, const std::function<bool(const IsoPlan&)>& wanted);

/// Runs in all ways of the newest answer, owned by the plans.
template <typename Content>
ComparedRuns* runsOf(PlanAnswers<Content>* plans, SpecDocument* document, RunQueue* queue, MessageBar* bar) {
  const auto ways = [plans] { return plans->result() ? waysOf(*plans->result()) : std::vector<RunWay>(); };
  return new ComparedRuns(document, plans, ways, queue, bar, plans);
}

/// Returns the first error for which a dialect cannot run the spec; empty if it can.
QString refusalOf(const DialectPlan& answer);
/// "micro 2 x N 8 x 2 ranks"
QString wayText(const IsoWay& way);

}  // namespace accrue::ui
