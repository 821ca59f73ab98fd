// SPDX-License-Identifier: Apache-2.0
// Places at which ranks can pause, and their names.
#pragma once

#include <cstdint>
#include <string>

#include "accrue/run/events/step_phase.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Unit that the ranks finish before they pause or stop: "micro-step" or "window".
const char* stretch_of(const RunSpec& spec);
/// The last micro-step of the window that holds the micro-step after this one.
std::int64_t next_boundary(const RunPlan& plan, std::int64_t micro_step);
/// The first micro-step, from this one on, after which ranks that follow the plan can pause.
std::int64_t next_stop(const RunPlan& plan, std::int64_t micro_step);
/// Returns for example "Paused after backward of micro 2 of 4, update 3".
std::string paused_text(const RunPlan& plan, std::int64_t micro_step, StepPhase phase);

}  // namespace accrue
