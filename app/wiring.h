// SPDX-License-Identifier: GPL-3.0-or-later
// Wiring: creates what the studio is made of and connects it; the only place that knows all of it.
#pragma once

#include <memory>

#include "bridge/engine_bridge.h"
#include "command_line.h"
#include "models/app_paths.h"

class QApplication;

namespace accrue::ui {

/// Options of the engine: ACCRUE_RANK_PROGRAM names another rank program; interactive says whether a user is there to
/// answer a run that pauses.
BridgeOptions bridgeOptions(bool interactive);

class Studio {
 public:
  Studio(QApplication& application, const CommandLine& line, const AppPaths& paths);
  ~Studio();
  /// Shows the window and does what the command line asks.
  void start();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace accrue::ui
