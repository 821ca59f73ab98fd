// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class MessageBar;
class RunControl;
class RunDialogs;
class RunLibrary;
class RunQueue;
class RunsPanel;
class SetupPanel;
class SpecDocument;

/// The Run menu: starts, pauses, steps, ends and continues runs, and enables what can be done now.
class TrainingCommands : public QObject {
  Q_OBJECT

 public:
  struct Parts {
    SpecDocument* document;
    RunControl* control;
    RunLibrary* library;
    RunQueue* queue;
    RunsPanel* runs;
    SetupPanel* setup;
    RunDialogs* dialogs;
    MessageBar* bar;
  };
  TrainingCommands(const Actions& actions, const Parts& parts, QWidget* window);

  /// False, with a message, if a field of the form has no valid value: nothing can be trained then.
  bool formHolds();
  void showEnabled();

 Q_SIGNALS:
  void editableChanged(bool editable);

 private:
  void connectSetup();
  void connectActions(QWidget* window);
  void connectRuns();
  void step(void (RunControl::*unit)());
  void showPause();
  void showEditsWaiting();
  void showContinuations();

  const Actions& actions_;
  Parts parts_;
};

}  // namespace accrue::ui
