// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class GroupsSheet;
class MessageBar;
class PreflightRunner;
class RunLibrary;
class RunQueue;
class SpecDocument;
class TrainingCommands;

/// Adds the set-up to the queue, and compares groups of what was trained.
class QueueCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    PreflightRunner* preflight;
    RunLibrary* library;
    RunQueue* queue;
    TrainingCommands* training;
    MessageBar* bar;
  };
  QueueCommands(const Actions& actions, const Parts& parts, QWidget* window);

 private:
  /// The form holds valid values.
  void addSetUp();
  void showAdded();
  void showGroups();

  Parts parts_;
  QWidget* window_;
  GroupsSheet* groups_ = nullptr;
  bool adding_ = false;  ///< waiting for the check of the set-up
  bool added_ = false;   ///< the queue contains runs that were added here
};

}  // namespace accrue::ui
