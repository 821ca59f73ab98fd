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

class RunControl;
class RunSeries;

/// Lets the window close only when no rank of a run hosted in it is left: asks what to do with the run and waits with
/// the event loop alive. After a deadline an end that was to come at once is forced; one that saves is asked about.
class CloseGuard : public QObject {
  Q_OBJECT

 public:
  CloseGuard(RunControl* control, Dialogs* dialogs, QSettings* settings, QWidget* window);

  /// True: the window may close now. False: it stays, for good (cancelled) or until readyToClose().
  bool mayClose();
  bool isWaiting() const { return waiting_; }
  /// Ends the run that is waited for, whatever it was saving.
  void stopNow();
  bool remembersAnswer() const;
  /// The next closing during a run asks again.
  void forgetAnswer();
  void setDeadline(std::chrono::milliseconds deadline) { deadline_.setInterval(deadline); }

 Q_SIGNALS:
  /// The window waits for the run to end.
  void waitingFor(const QString& sentence);
  void readyToClose();
  /// The deadline is over and the ranks still save; the wait goes on.
  void stillSaving(const QString& sentence);
  /// The window stays after all; why is empty where the run's own end says it.
  void stays(const QString& why);
  void rememberedChanged();

 private:
  CloseAnswer ask();
  void carryOut();
  void takeEnd(const RunSeries* run);
  void passDeadline();
  void force();

  RunControl* control_;
  Dialogs* dialogs_;
  QSettings* settings_;
  QWidget* window_;
  QTimer deadline_;
  CloseAnswer answer_ = CloseAnswer::cancel;
  bool waiting_ = false;
  bool killed_ = false;
};

}  // namespace accrue::ui
