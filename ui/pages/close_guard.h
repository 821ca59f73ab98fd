// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <functional>

#include "dialogs.h"

class QSettings;
class QWidget;

namespace accrue::ui {

class CompanionRun;
class RunControl;
class RunQueue;
class RunSeries;

/// Lets the window close only when no rank of a run hosted in it is left: asks what to do with the run and waits while
/// the event loop runs. After a deadline it kills a run that was to stop now, and asks again about one that is saving.
class CloseGuard : public QObject {
  Q_OBJECT

 public:
  CloseGuard(RunControl* control, Dialogs* dialogs, QSettings* settings, QWidget* window);

  /// True: the window may close now. False: it stays open, because the user cancelled or until readyToClose().
  bool mayClose();
  bool isWaiting() const { return waiting_; }
  /// Ends the run that the window waits for, even while it saves.
  void stopNow();
  bool remembersAnswer() const;
  /// Closing during a run asks again from now on.
  void forgetAnswer();
  /// The window says how many of its runs wait, and will not begin once it has closed.
  void setQueue(const RunQueue* queue) { queue_ = queue; }
  /// The other run of a pair is asked about and waited for as the window's run is.
  void setCompanion(CompanionRun* companion);
  void setDeadline(std::chrono::milliseconds deadline) { deadline_.setInterval(deadline); }

 Q_SIGNALS:
  /// The window waits for the run to end.
  void waitingFor(const QString& sentence);
  void readyToClose();
  /// The deadline has passed and the ranks are still saving; the wait continues.
  void stillSaving(const QString& sentence);
  /// The window stays open after all; `why` is empty if the message about the run's end explains it.
  void stays(const QString& why);
  void rememberedChanged();

 private:
  CloseAnswer ask();
  /// Whether the window's run trains here: one that is followed from elsewhere goes on without the window.
  bool hostsOwn() const;
  /// Whether ranks train that would end with the window.
  bool hosts() const;
  void carryOut();
  void takeState();
  void takeEnd(const RunSeries* run);
  void passDeadline();
  void force();

  RunControl* control_;
  CompanionRun* companion_ = nullptr;
  const RunQueue* queue_ = nullptr;
  Dialogs* dialogs_;
  QSettings* settings_;
  QWidget* window_;
  QTimer deadline_;
  CloseAnswer answer_ = CloseAnswer::cancel;
  bool waiting_ = false;
  bool waiting_for_copy_ = false;
  bool killed_ = false;
};

}  // namespace accrue::ui
