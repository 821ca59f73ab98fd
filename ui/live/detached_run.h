// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include "accrue/run/base/result.h"
#include "series/engine_bridge.h"

namespace accrue::ui {

/// Continues a run from its newest checkpoint in a separate process that outlives this one: accrue-run, from the folder
/// of this program or of the rank program in the options. Returns once that process exists; the run's folder shows its
/// progress. Errors (device): accrue-run is missing, or cannot be started.
Result<void> resumeDetached(const BridgeOptions& options, const QString& folder);

}  // namespace accrue::ui
