// SPDX-License-Identifier: Apache-2.0
// The pure function behind a plan. The planner calls it, and so does every rank that reads plan.json, so both hold the
// same numbers.
#pragma once

#include <optional>

#include "accrue/run/run_plan.h"

namespace accrue {

/// Derives every number. The spec must have passed preflight's checks.
RunPlan derive_plan(const PlanInputs& inputs);

/// N where no schedule of lengths says otherwise: accumulation.steps, or what a target global batch comes to. Preflight
/// refuses a target that does not divide, unless it may be rounded.
std::int64_t steps_of(const AccumulationSpec& spec, std::int64_t world);

/// The ramp that accumulation.rampup asks for, up to the batch of a full window; nothing where it does not hold three
/// numbers.
std::optional<RampUp> ramp_of(const AccumulationSpec& spec, std::int64_t world);

SampleOrder make_order(const RunSpec& spec, const DataFacts& data);
/// The window with its run limit; all four units of [run] become updates, epochs or micro-steps here.
WindowShape make_window(const RunSpec& spec, const SampleOrder& order, const DataFacts& data);

/// Longest run that a plan walks; checked before the walk.
inline constexpr std::int64_t max_micro_steps_of_run = 100'000'000;

}  // namespace accrue
