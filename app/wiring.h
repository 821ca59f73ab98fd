// SPDX-License-Identifier: GPL-3.0-or-later
// Wiring: creates and connects the parts of the studio; the only place that knows them all.
#pragma once

#include <memory>

#include "command_line.h"
#include "kit/app_paths.h"
#include "series/engine_bridge.h"

class QApplication;

namespace accrue::ui {

/// Options of the engine: ACCRUE_RANK_PROGRAM names another rank program; interactive: a user can answer a run that
/// pauses on non-finite values.
BridgeOptions bridgeOptions(bool interactive);

class Studio {
 public:
  Studio(QApplication& application, const CommandLine& line, const AppPaths& paths);
  ~Studio();
  /// Shows the window and executes requests of the command line. A signal that ends the session closes the window
  /// without loss and without questions; the event loop then ends with 128 + its number.
  void start();

 private:
  struct Parts;
  void endSession(int signal, bool insists);

  std::unique_ptr<Parts> parts_;
};

}  // namespace accrue::ui
