// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <atomic>
#include <memory>

#include "variants.h"

namespace accrue::ui {

class SeedDialogs;
class GroupsSheet;
class MainWindow;
class MessageBar;
class PreflightRunner;
class RunControl;
class RunLibrary;
class RunQueue;
class SpecDocument;
class Actions;

/// Commands that train more than one run: adding the set-up to the queue, and the set-up under several seeds.
class QueueCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    PreflightRunner* preflight;
    RunControl* control;
    RunLibrary* library;
    RunQueue* queue;
    SeedDialogs* dialogs;
    MessageBar* bar;
  };
  QueueCommands(const Actions& actions, const Parts& parts, QWidget* window);
  /// Both use the form as it stands: it must hold valid values.
  void addSetUp();
  void runSeeds();
  ComparedRuns* seedRuns() const { return seed_runs_; }

 private:
  void showAdded();
  void showGroups();
  void showEnabled();

  const Actions& actions_;
  Parts parts_;
  QWidget* window_;
  std::shared_ptr<std::atomic<int>> seed_count_;
  SeedPlans* seeds_;
  ComparedRuns* seed_runs_;
  GroupsSheet* groups_ = nullptr;
  bool adding_ = false;  ///< waiting for the check of the set-up
  bool added_ = false;   ///< the queue contains runs that were added here
};

}  // namespace accrue::ui
