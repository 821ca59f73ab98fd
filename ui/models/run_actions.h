// SPDX-License-Identifier: GPL-3.0-or-later
// What may be done in each state of a run: one table for the window, the tests and the help.
#pragma once

#include <array>
#include <set>

#include "accrue/run/run_state.h"

namespace accrue::ui {

enum class RunAction { edit, run, pause, proceed, step, stop, kill, checkpoint, checkpointAndStop, setSteps, resume };
using RunActions = std::set<RunAction>;

inline constexpr std::array allRunStates = {
    RunState::idle,     RunState::preflight,  RunState::starting, RunState::running, RunState::paused,
    RunState::degraded, RunState::restarting, RunState::stopping, RunState::failed,  RunState::finished};

/// resume is in it where a state can have something to resume; whether it has is the run's own matter (a checkpoint,
/// an end before the plan's).
RunActions enabledActions(RunState state);

}  // namespace accrue::ui
