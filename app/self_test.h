// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "series/engine_bridge.h"

namespace accrue::ui {

/// Trains a tiny model on two ranks for a few updates in a temporary folder, prints one line and returns the exit
/// status: 0 if it finished. Needs a QCoreApplication.
int runSelfTest(const BridgeOptions& options);

/// Where there is a display, names on standard error a picture of what the studio should look like. It is put into the
/// cache.
void nameThePicture(const QString& cacheDir);

}  // namespace accrue::ui
