// SPDX-License-Identifier: GPL-3.0-or-later
#include "close_guard.h"

#include <QSettings>
#include <QWidget>
#include <utility>

#include "detached_run.h"
#include "models/companion_run.h"
#include "models/run_control.h"
#include "models/run_queue.h"
#include "models/run_series.h"

namespace accrue::ui {

namespace {

constexpr auto remembered_key = "closing/answer";

constexpr std::pair<CloseAnswer, const char*> remembered_words[] = {
    {CloseAnswer::keepRunning, "keep"}, {CloseAnswer::checkpointAndStop, "checkpoint"}, {CloseAnswer::stopNow, "stop"}};

}  // namespace

CloseGuard::CloseGuard(RunControl* control, Dialogs* dialogs, QSettings* settings, QWidget* window)
    : QObject(window), control_(control), dialogs_(dialogs), settings_(settings), window_(window) {
  deadline_.setSingleShot(true);
  deadline_.setInterval(std::chrono::seconds(30));
  connect(&deadline_, &QTimer::timeout, this, &CloseGuard::passDeadline);
  connect(control_, &RunControl::stateChanged, this, &CloseGuard::takeState);
  connect(control_, &RunControl::ended, this, [this](const RunSeries* run) {
    if (!control_->attached()) takeEnd(run);
  });
}

void CloseGuard::setCompanion(CompanionRun* companion) {
  companion_ = companion;
  connect(companion_, &CompanionRun::ended, this, &CloseGuard::takeEnd);
}

bool CloseGuard::hostsOwn() const {
  return control_->isLive() && !control_->attached();
}

bool CloseGuard::hosts() const {
  return hostsOwn() || (companion_ && companion_->isLive());
}

bool CloseGuard::mayClose() {
  if (control_->isCopying()) {
    if (std::exchange(waiting_, true)) return false;
    waiting_for_copy_ = true;
    answer_ = CloseAnswer::stopNow;
    killed_ = false;
    control_->stop();
    if (companion_) companion_->stop();
    Q_EMIT waitingFor(tr("Closing once the checkpoint of the branch has been copied. The branch is then ended."));
    return false;
  }
  if (!hosts()) return true;
  if (waiting_) {
    // Closed again while waiting: the user does not want to wait.
    force();
    return false;
  }
  answer_ = ask();
  if (answer_ == CloseAnswer::cancel) return false;
  // The run may have ended while the question was open.
  if (!hosts()) return true;
  carryOut();
  if (!hosts()) return true;
  waiting_ = true;
  killed_ = false;
  deadline_.start();
  return false;
}

void CloseGuard::carryOut() {
  const bool own = hostsOwn();
  const bool stopping = own ? control_->state() == RunState::stopping : companion_ && companion_->isStopping();
  // A run that the user has stopped is not kept running.
  if (stopping && answer_ == CloseAnswer::keepRunning) answer_ = CloseAnswer::checkpointAndStop;
  if (own && !stopping) {
    if (answer_ == CloseAnswer::stopNow && control_->actions().contains(RunAction::stopUnsaved))
      control_->stopUnsaved();
    else
      control_->stop();
  }
  if (companion_ && answer_ == CloseAnswer::stopNow)
    companion_->kill();
  else if (companion_)
    companion_->stop();
  switch (answer_) {
    case CloseAnswer::keepRunning:
      Q_EMIT waitingFor(
          tr("Closing once the current update is saved; the run continues from there. Close again to end it at once."));
      break;
    case CloseAnswer::checkpointAndStop:
      Q_EMIT waitingFor(tr("Closing once the current update is saved. Close again to end the run at once."));
      break;
    case CloseAnswer::stopNow:
      Q_EMIT waitingFor(tr("Closing once the ranks have ended. Close again to end them at once."));
      break;
    case CloseAnswer::cancel:
      break;
  }
}

/// A branch that could not begin has no end to wait for.
void CloseGuard::takeState() {
  if (!waiting_for_copy_ || control_->isCopying()) return;
  waiting_for_copy_ = false;
  if (hosts()) {
    deadline_.start();
    return;
  }
  waiting_ = false;
  Q_EMIT readyToClose();
}

void CloseGuard::takeEnd(const RunSeries* run) {
  if (!waiting_) return;
  const auto stay = [this](const QString& why) {
    waiting_ = false;
    deadline_.stop();
    Q_EMIT stays(why);
  };
  if (answer_ == CloseAnswer::keepRunning && !killed_) {
    const QString outcome = run->outcome().outcome;
    if (outcome == QLatin1String("failed")) return stay(QString());  // the window shows what failed and what to do
    if (outcome == QLatin1String("stopped"))
      if (const auto resumed = resumeDetached(control_->bridgeOptions(), run->folder()); !resumed)
        return stay(QString::fromStdString(resumed.error().text()));
  }
  if (hosts()) return;
  waiting_ = false;
  deadline_.stop();
  Q_EMIT readyToClose();
}

bool CloseGuard::remembersAnswer() const {
  return settings_->contains(QLatin1String(remembered_key));
}

void CloseGuard::forgetAnswer() {
  settings_->remove(QLatin1String(remembered_key));
  Q_EMIT rememberedChanged();
}

CloseAnswer CloseGuard::ask() {
  const QString remembered = settings_->value(QLatin1String(remembered_key)).toString();
  const std::size_t waiting = queue_ ? queue_->waiting() : 0;
  // An answer for one run is none for those that wait behind it.
  for (const auto& [answer, word] : remembered_words)
    if (waiting == 0 && remembered == QLatin1String(word)) return answer;
  QString question = hostsOwn() && companion_ && companion_->isLive()
                         ? tr("A pair of runs is training in this window. What should happen to it?")
                         : tr("A run is training in this window. What should happen to it?");
  if (waiting == 1) question += QLatin1Char(' ') + tr("1 more run waits in the queue and will not begin.");
  if (waiting > 1) question += QLatin1Char(' ') + tr("%1 more runs wait in the queue and will not begin.").arg(waiting);
  const CloseChoice choice = dialogs_->askClose(window_, question);
  if (!choice.remember) return choice.answer;
  for (const auto& [answer, word] : remembered_words) {
    if (choice.answer != answer) continue;
    settings_->setValue(QLatin1String(remembered_key), QLatin1String(word));
    Q_EMIT rememberedChanged();
  }
  return choice.answer;
}

void CloseGuard::passDeadline() {
  if (killed_ || answer_ == CloseAnswer::stopNow) {
    force();
    return;
  }
  // The run is saving, so the user decides whether to wait.
  Q_EMIT stillSaving(
      tr("The ranks are still saving. The window closes when they are done; Stop now discards everything "
         "trained since the last checkpoint."));
  deadline_.start();
}

void CloseGuard::stopNow() {
  if (waiting_ && !killed_) force();
}

void CloseGuard::force() {
  if (killed_) {
    // Even a kill had no effect: the remaining ranks are ended when the engine's host is destroyed.
    waiting_ = false;
    Q_EMIT readyToClose();
    return;
  }
  killed_ = true;
  if (hostsOwn()) control_->kill();
  if (companion_) companion_->kill();
  deadline_.start(std::chrono::seconds(5));
}

}  // namespace accrue::ui
