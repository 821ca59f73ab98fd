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

/// Lets the window close only when no rank of a run hosted in it is left: asks what to do with the run, waits with the
/// event loop alive, and forces the end after a deadline.
class CloseGuard : public QObject {
  Q_OBJECT

 public:
  CloseGuard(RunControl* control, Dialogs* dialogs, QSettings* settings, QWidget* window);

  /// True: the window may close now. False: it stays, for good (cancelled) or until readyToClose().
  bool mayClose();
  bool isWaiting() const { return waiting_; }
  void setDeadline(std::chrono::milliseconds deadline) { deadline_.setInterval(deadline); }

 Q_SIGNALS:
  /// The window waits for the run to end.
  void waitingFor(const QString& sentence);
  void readyToClose();

 private:
  CloseAnswer ask();
  void force();

  RunControl* control_;
  Dialogs* dialogs_;
  QSettings* settings_;
  QWidget* window_;
  QTimer deadline_;
  bool waiting_ = false;
  bool killed_ = false;
  bool keep_running_ = false;
};

}  // namespace accrue::ui
