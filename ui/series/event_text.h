// SPDX-License-Identifier: GPL-3.0-or-later
// Events as sentences, for the log and the narrator.
#pragma once

#include <QString>

#include "accrue/run/run_event.h"

namespace accrue::ui {

/// One sentence; empty for kinds without one (heartbeat, holding, gauge).
QString eventSentence(const accrue::RunEvent& event);
/// 0 plain, 1 warning, 2 failure.
int eventSeverity(const accrue::RunEvent& event);
/// The update an event belongs to; 0 if it belongs to none.
std::int64_t eventUpdate(const accrue::RunEvent& event);
/// The kind as people read it: "update", "micro-steps", "collectives", ...
QString eventKindText(const QString& kind);

}  // namespace accrue::ui
