// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

#include "command_line.h"

namespace accrue::ui {

class MainWindow;
class RunControl;
class RunSeries;

/// Does what the command line asks of the open window: runs, photographs, leaves with the run's exit status.
class AutoRun : public QObject {
  Q_OBJECT

 public:
  AutoRun(const CommandLine& line, MainWindow* window, RunControl* control, QObject* parent = nullptr);
  void start();

 private:
  void finish(int exit_status);
  void leave(int exit_status);

  CommandLine line_;
  MainWindow* window_;
  RunControl* control_;
  bool finished_ = false;
  bool unreadable_ = false;
};

}  // namespace accrue::ui
