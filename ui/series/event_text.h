// SPDX-License-Identifier: GPL-3.0-or-later
// Sentences about events, for the log and the narrator.
#pragma once

#include <QString>

#include "accrue/run/events/run_event.h"

namespace accrue::ui {

/// One sentence; empty for kinds without one (heartbeat, holding, gauge).
QString eventSentence(const accrue::RunEvent& event);
/// Returns 0 for plain, 1 for a warning, 2 for a failure.
int eventSeverity(const accrue::RunEvent& event);
/// Returns the update of an event; 0 if it has none.
std::int64_t eventUpdate(const accrue::RunEvent& event);
/// Returns the kind in words for people: "update", "micro-steps", "collectives", ...
QString eventKindText(const QString& kind);

}  // namespace accrue::ui
