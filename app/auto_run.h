// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "command_line.h"

namespace accrue::ui {

class MainWindow;
class PreflightRunner;
class RunControl;
class RunLibrary;

/// Executor of the command line's requests on the open window: runs, saves a picture, exits with the run's status.
class AutoRun : public QObject {
  Q_OBJECT

 public:
  AutoRun(const CommandLine& line, MainWindow* window, PreflightRunner* preflight, RunControl* control,
          RunLibrary* library, QObject* parent = nullptr);
  void start();

 private:
  /// Chooses the command line's plug-in libraries, in their current state, for the open spec.
  void chooseLibraries();
  /// Exits once the window shows the histories of the run folders.
  void finishWhenRead();
  void finish(int exit_status);
  void leave(int exit_status);

  CommandLine line_;
  MainWindow* window_;
  PreflightRunner* preflight_;
  RunControl* control_;
  RunLibrary* library_;
  bool finished_ = false;
  bool unreadable_ = false;
  bool reading_ = false;  ///< histories are still being read
};

}  // namespace accrue::ui
