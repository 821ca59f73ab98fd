// SPDX-License-Identifier: Apache-2.0
// The pure function behind a plan. The planner and every rank that reads plan.json call it, so both have the same
// numbers.
#pragma once

#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Derives every number. The spec must have passed preflight.
RunPlan derive_plan(const PlanInputs& inputs);

SampleOrder make_order(const RunSpec& spec, const DataFacts& data);
/// Returns the window with its run limit; all four units of [run] become updates, epochs or micro-steps here.
WindowShape make_window(const RunSpec& spec, const SampleOrder& order, const DataFacts& data);

/// Maximum length of a run that a plan walks; checked before the walk.
inline constexpr std::int64_t max_micro_steps_of_run = 100'000'000;

}  // namespace accrue
