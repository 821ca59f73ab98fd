// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class CompanionRun;
class MessageBar;
class PairedRun;
class PlotArea;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunQueue;
class RunsPanel;
class TrainingCommands;
class SpecFiles;

/// The commands on two runs: comparing them, and training the set-up as the focused run's partner.
class PairCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    RunControl* control;
    CompanionRun* companion;
    RunQueue* queue;
    PreflightRunner* preflight;
    RunLibrary* library;
    RunsPanel* runs;
    SpecFiles* files;
    TrainingCommands* training;
    PlotArea* plots;
    MessageBar* bar;
  };
  PairCommands(const Actions& actions, const Parts& parts, QWidget* window);

 private:
  void showEnabled();

  const Actions& actions_;
  Parts parts_;
};

}  // namespace accrue::ui
