// SPDX-License-Identifier: GPL-3.0-or-later
// Words and sentences about a run.
#pragma once

#include <QString>
#include <cstddef>
#include <optional>
#include <string>

#include "accrue/run/run_state.h"
#include "accrue/run/spec_fields.h"
#include "accrue/run/step_phase.h"

namespace accrue::ui {

class RunSeries;

/// The words after the state's: "at micro 2 of 4, in update 18" after "Paused".
QString stateSentence(const RunSeries& run, RunState state);
/// "Ready", "Running", "Paused", ...
QString stateName(accrue::RunState state);
/// The user ended the run before its planned end.
bool isStopped(const RunSeries* run, RunState state);
/// "Stopped" if the user stopped the run, else the state's name.
QString stateWord(const RunSeries* run, RunState state);
/// "forward", "scale", ...: the phases of a micro-step by the words of the events.
QString phaseName(accrue::StepPhase phase);
/// The newest recorded weights: "0.95475", "0.0953, 0.4337", "0.1, 0.2, 0.3, 0.4 and 96 more"; empty if none were
/// recorded.
QString lastWeightsText(const RunSeries& run, std::size_t most = 4);
/// Seconds to the planned end at the mean speed so far; empty before two updates.
std::optional<double> secondsLeft(const RunSeries& run);

/// Said in place of numbers where !cost_is_known().
QString unknownCostText();
/// "on" or "off", as the form says of a switch.
QString switchWord(bool on);
/// A text about a field, where a yes/no field's "true" and "false" are "on" and "off".
QString inSwitchWords(const SpecField* field, QString text);

}  // namespace accrue::ui
