// SPDX-License-Identifier: GPL-3.0-or-later
// Words and sentences about a run.
#pragma once

#include <QString>
#include <cstddef>
#include <optional>
#include <string>

#include "accrue/run/events/run_state.h"
#include "accrue/run/events/step_phase.h"
#include "accrue/run/fields/spec_fields.h"

namespace accrue::ui {

class RunSeries;

/// Words after the state: "at micro 2 of 4, in update 18" after "Paused".
QString stateSentence(const RunSeries& run, RunState state);
/// Returns "Ready", "Running", "Paused", ...
QString stateName(accrue::RunState state);
/// Whether the user ended the run before its planned end.
bool isStopped(const RunSeries* run, RunState state);
/// "Stopped" if the user stopped the run, else the state's name.
QString stateWord(const RunSeries* run, RunState state);
/// Name of a phase in the words of the events: "forward", "scale", ...
QString phaseName(accrue::StepPhase phase);
/// The newest recorded weights: "0.95475", "0.0953, 0.4337", "0.1, 0.2, 0.3, 0.4 and 96 more"; empty if none were
/// recorded.
QString lastWeightsText(const RunSeries& run, std::size_t most = 4);
/// Seconds to the planned end at the mean speed so far; empty before two updates.
std::optional<double> secondsLeft(const RunSeries& run);

/// Text instead of numbers if !cost_is_known().
QString unknownCostText();
/// "on" or "off", the form's words for a switch.
QString switchWord(bool on);
/// Replaces a yes/no field's "true" and "false" in a text by "on" and "off".
QString inSwitchWords(const SpecField* field, QString text);

}  // namespace accrue::ui
