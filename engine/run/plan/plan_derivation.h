// SPDX-License-Identifier: Apache-2.0
// The pure function behind a plan. The planner calls it, and so does every rank that reads plan.json, so both hold the
// same numbers.
#pragma once

#include "accrue/run/run_plan.h"

namespace accrue {

/// Derives every number. The spec must have passed preflight's checks.
RunPlan derive_plan(const PlanInputs& inputs);

SampleOrder make_order(const RunSpec& spec, const DataFacts& data);
/// The window with its run limit; all four units of [run] become updates, epochs or micro-steps here.
WindowShape make_window(const RunSpec& spec, const SampleOrder& order, const DataFacts& data);

/// Longest run that a plan walks; checked before the walk.
inline constexpr std::int64_t max_micro_steps_of_run = 100'000'000;

}  // namespace accrue
