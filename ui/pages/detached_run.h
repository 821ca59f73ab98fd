// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include "accrue/run/result.h"
#include "bridge/engine_bridge.h"

namespace accrue::ui {

/// Continues a run from its newest checkpoint in a process of its own, which outlives this one: accrue-run, from beside
/// this program or beside the rank program of the options. Returns once that process exists; what becomes of it is in
/// the run's folder. Errors (device): there is no accrue-run there, or it cannot be started.
Result<void> resumeDetached(const BridgeOptions& options, const QString& folder);

}  // namespace accrue::ui
