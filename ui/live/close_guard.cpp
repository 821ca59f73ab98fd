// SPDX-License-Identifier: GPL-3.0-or-later
#include "close_guard.h"

#include <QApplication>
#include <QSettings>
#include <QWidget>
#include <algorithm>
#include <utility>

#include "detached_run.h"
#include "run_queue.h"
#include "series/run_series.h"

namespace accrue::ui {

namespace {

/// Time limit for a kill.
constexpr std::chrono::seconds kill_deadline{5};

/// Less than a log-out allows, together with the time for killing.
constexpr std::chrono::seconds session_deadline{20};

constexpr auto remembered_key = "closing/answer";

constexpr std::pair<CloseAnswer, const char*> remembered_words[] = {
    {CloseAnswer::keepRunning, "keep"}, {CloseAnswer::checkpointAndStop, "checkpoint"}, {CloseAnswer::stopNow, "stop"}};

}  // namespace

CloseGuard::CloseGuard(BridgeOptions options, RunDialogs* dialogs, QSettings* settings, QWidget* window)
    : QObject(window), options_(std::move(options)), dialogs_(dialogs), settings_(settings), window_(window) {
  deadline_.setSingleShot(true);
  connect(&deadline_, &QTimer::timeout, this, &CloseGuard::passDeadline);
}

void CloseGuard::watch(std::vector<HostedRun*> places) {
  places_ = std::move(places);
  for (const HostedRun* place : places_) connect(place, &HostedRun::hostingChanged, this, &CloseGuard::review);
}

bool CloseGuard::have(const RunSeries* run) const {
  return std::ranges::any_of(places_, [run](const HostedRun* place) { return place->run() == run; });
}

std::size_t CloseGuard::count(Hosting hosting) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(places_, [hosting](const HostedRun* place) { return place->hosting() == hosting; }));
}

bool CloseGuard::hosts() const {
  return count(Hosting::none) < places_.size();
}

bool CloseGuard::mayClose() {
  if (given_up_ || !hosts()) return true;
  if (waiting_) {
    if (session_ends_) return false;  // there is no user to insist
    // Closed again while waiting: the user does not want to wait.
    force();
    return false;
  }
  // A run that is only beginning has trained nothing to keep.
  const bool trained = count(Hosting::trains) + count(Hosting::ends) > 0;
  answer_ = CloseAnswer::stopNow;
  if (trained && !session_ends_) {
    asking_ = true;
    answer_ = ask();
    if (!std::exchange(asking_, false)) return true;  // the runs have ended meanwhile
  }
  if (session_ends_) answer_ = CloseAnswer::checkpointAndStop;  // also if the question was still open
  if (answer_ == CloseAnswer::cancel) return false;
  // The runs may have ended while the question was open.
  if (!hosts()) return true;
  carryOut();
  return false;
}

void CloseGuard::carryOut() {
  awaited_.clear();
  refusals_.clear();
  failed_ = killed_ = false;
  // All are checked before any is ended: the end of one of a pair is that of the other.
  for (HostedRun* place : places_)
    if (const Hosting hosting = place->hosting(); hosting != Hosting::none)
      awaited_.push_back({place, hosting == Hosting::trains && answer_ == CloseAnswer::keepRunning});
  sayWaiting();
  for (const Awaited& each : awaited_) {
    if (answer_ == CloseAnswer::stopNow)
      each.place->endUnsaved();
    else
      each.place->saveAndEnd();
  }
  waiting_ = true;
  startDeadline();
}

void CloseGuard::startDeadline() {
  deadline_.start(session_ends_ ? session_deadline : usual_deadline_);
}

void CloseGuard::endSession() {
  session_ends_ = true;
  if (waiting_ && !killed_) startDeadline();
}

void CloseGuard::sayWaiting() {
  const bool several = awaited_.size() > 1;
  const bool go_on = std::ranges::any_of(awaited_, &Awaited::goes_on);
  if (count(Hosting::begins) == awaited_.size())
    Q_EMIT waitingFor(tr("Closing once the checkpoint of the branch has been copied. The branch is then ended."));
  else if (answer_ == CloseAnswer::stopNow || count(Hosting::trains) == 0)
    Q_EMIT waitingFor(tr("Closing once the ranks have ended. Close again to end them at once."));
  else if (go_on)
    Q_EMIT waitingFor(
        several
            ? tr("Closing once the current updates are saved; the runs continue from there. Close again to end them at "
                 "once.")
            : tr("Closing once the current update is saved; the run continues from there. Close again to end it at "
                 "once."));
  else
    Q_EMIT waitingFor(several ? tr("Closing once the current updates are saved. Close again to end the runs at once.")
                              : tr("Closing once the current update is saved. Close again to end the run at once."));
}

/// A run that begins while the window waits is not among them: the user is asked about it when they have ended.
void CloseGuard::review() {
  if (asking_ && !hosts()) {
    asking_ = false;  // the question has no subject any more
    if (QWidget* question = QApplication::activeModalWidget()) question->close();
  }
  if (!waiting_) return;
  const auto over = [](const Awaited& each) { return each.place->hosting() == Hosting::none; };
  for (const Awaited& each : awaited_)
    if (over(each) && each.goes_on && !killed_) letGoOn(*each.place);
  std::erase_if(awaited_, over);
  if (!awaited_.empty()) return;
  waiting_ = false;
  deadline_.stop();
  if (!killed_ && !session_ends_ && (failed_ || !refusals_.isEmpty()))
    Q_EMIT stays(refusals_.join(QLatin1Char('\n')));
  else
    Q_EMIT readyToClose();
}

void CloseGuard::letGoOn(const HostedRun& place) {
  if (place.wasKilled()) return;
  const RunSeries& run = *place.run();
  if (run.state() == RunState::failed) failed_ = true;  // the window shows the failure and the advice
  if (run.state() == RunState::failed || run.outcome().outcome != QLatin1String("stopped")) return;
  if (const auto resumed = resumeDetached(options_, run.folder()); !resumed)
    refusals_.append(QString::fromStdString(resumed.error().text()));
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
  // An answer for one run does not apply to those that wait behind it.
  for (const auto& [answer, word] : remembered_words)
    if (waiting == 0 && remembered == QLatin1String(word)) return answer;
  QString question = count(Hosting::trains) + count(Hosting::ends) > 1
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
  if (killed_ || session_ends_ || answer_ == CloseAnswer::stopNow) {
    force();
    return;
  }
  // The run is saving, so the user decides whether to wait.
  Q_EMIT stillSaving(
      tr("The ranks are still saving. The window closes when they are done; Stop now discards everything "
         "trained since the last checkpoint."));
  startDeadline();
}

void CloseGuard::stopNow() {
  if (waiting_ && !killed_) force();
}

void CloseGuard::force() {
  deadline_.start(kill_deadline);
  // A run that is only beginning cannot be killed, but ends by itself once it has begun.
  if (count(Hosting::begins) == awaited_.size()) return;
  if (killed_) {
    // Even a kill had no effect: the remaining ranks are ended when the engine's host is destroyed.
    given_up_ = true;
    waiting_ = false;
    deadline_.stop();
    Q_EMIT readyToClose();
    return;
  }
  killed_ = true;
  // Each may report its end at once, and is then removed from the list.
  const std::vector<Awaited> killed = awaited_;
  for (const Awaited& each : killed) each.place->kill();
}

}  // namespace accrue::ui
