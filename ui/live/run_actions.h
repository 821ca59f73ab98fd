// SPDX-License-Identifier: GPL-3.0-or-later
// Actions allowed in each state of a run: one table for the window, the tests and the help.
#pragma once

#include <array>
#include <set>

#include "accrue/run/events/run_state.h"

namespace accrue::ui {

enum class RunAction { edit, run, pause, proceed, step, stop, kill, checkpoint, stopUnsaved, setSteps, resume };
using RunActions = std::set<RunAction>;

inline constexpr std::array allRunStates = {
    RunState::idle,     RunState::preflight,  RunState::starting, RunState::running, RunState::paused,
    RunState::degraded, RunState::restarting, RunState::stopping, RunState::failed,  RunState::finished};

/// Includes resume if a run in this state may be resumable; the run itself decides (it needs a checkpoint and must have
/// ended before the plan's end).
RunActions enabledActions(RunState state);

}  // namespace accrue::ui
