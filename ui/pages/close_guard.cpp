// SPDX-License-Identifier: GPL-3.0-or-later
#include "close_guard.h"

#include <QProcess>
#include <QSettings>
#include <QWidget>

#include "models/app_paths.h"
#include "models/run_control.h"
#include "models/run_series.h"

namespace accrue::ui {

namespace {

constexpr auto remembered_key = "closing/answer";

/// The headless program hosts the run from here on; it takes the folder's lock once this window has let go of it.
bool continueInBackground(const QString& folder) {
  return QProcess::startDetached(runProgram(), {QStringLiteral("resume"), folder, QStringLiteral("--detach")});
}

}  // namespace

CloseGuard::CloseGuard(RunControl* control, Dialogs* dialogs, QSettings* settings, QWidget* window)
    : QObject(window), control_(control), dialogs_(dialogs), settings_(settings), window_(window) {
  deadline_.setSingleShot(true);
  deadline_.setInterval(std::chrono::seconds(30));
  connect(&deadline_, &QTimer::timeout, this, &CloseGuard::force);
  connect(control_, &RunControl::ended, this, [this](const RunSeries* run) {
    if (!waiting_) return;
    waiting_ = false;
    deadline_.stop();
    if (keep_running_ && run->outcome().outcome == QLatin1String("stopped") && !continueInBackground(run->folder())) {
      Q_EMIT waitingFor(
          tr("accrue-run could not be started, so the run does not go on in the background. It is saved: "
             "Resume continues it here."));
      return;
    }
    Q_EMIT readyToClose();
  });
}

bool CloseGuard::mayClose() {
  if (!control_->isLive() || control_->attached()) return true;
  if (waiting_) {
    // Asked again while it waits: the user does not want to wait.
    force();
    return false;
  }
  const CloseAnswer answer = ask();
  keep_running_ = answer == CloseAnswer::keepRunning;
  switch (answer) {
    case CloseAnswer::cancel:
      return false;
    case CloseAnswer::keepRunning:
    case CloseAnswer::checkpointAndStop:
      if (control_->actions().contains(RunAction::checkpointAndStop))
        control_->checkpointAndStop();
      else if (control_->state() != RunState::stopping)
        control_->stop();
      Q_EMIT waitingFor(tr("Closing once the update in hand is saved. Close again to end at once."));
      break;
    case CloseAnswer::stopNow:
      if (control_->state() != RunState::stopping) control_->stop();
      Q_EMIT waitingFor(tr("Closing once the ranks have ended. Close again to end at once."));
      break;
  }
  if (!control_->isLive()) return true;
  waiting_ = true;
  killed_ = false;
  deadline_.start();
  return false;
}

CloseAnswer CloseGuard::ask() {
  const QString remembered = settings_->value(QLatin1String(remembered_key)).toString();
  if (remembered == QLatin1String("keep")) return CloseAnswer::keepRunning;
  if (remembered == QLatin1String("checkpoint")) return CloseAnswer::checkpointAndStop;
  if (remembered == QLatin1String("stop")) return CloseAnswer::stopNow;
  const CloseChoice choice =
      dialogs_->askClose(window_, tr("A run is training in this window. What should become of it?"));
  if (choice.remember && choice.answer != CloseAnswer::cancel) {
    const bool keep = choice.answer == CloseAnswer::keepRunning;
    const bool save = choice.answer == CloseAnswer::checkpointAndStop;
    settings_->setValue(QLatin1String(remembered_key), keep   ? QStringLiteral("keep")
                                                       : save ? QStringLiteral("checkpoint")
                                                              : QStringLiteral("stop"));
  }
  return choice.answer;
}

void CloseGuard::force() {
  if (killed_) {
    // Not even a kill was answered: what is left is ended when the engine's host is destroyed.
    waiting_ = false;
    Q_EMIT readyToClose();
    return;
  }
  killed_ = true;
  control_->kill();
  deadline_.start(std::chrono::seconds(5));
}

}  // namespace accrue::ui
