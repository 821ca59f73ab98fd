// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "series/engine_bridge.h"

namespace accrue::ui {

/// Trains a tiny model on two ranks for a few updates in a temporary folder, prints one line and returns the exit
/// status: 0 if it finished. Needs a QCoreApplication.
int runSelfTest(const BridgeOptions& options);

/// If there is a display, names on standard error a reference picture of the studio, which is written to the cache.
void nameThePicture(const QString& cacheDir);

}  // namespace accrue::ui
