// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_queue.h"

#include <algorithm>
#include <utility>

#include "run_control.h"
#include "series/run_name.h"

namespace accrue::ui {

RunQueue::RunQueue(RunControl* control, QObject* parent) : QObject(parent), control_(control) {
  connect(control_, &RunControl::runBegun, this, &RunQueue::takeBegun);
  // Queued: the next run begins after all receivers have handled this one's end.
  connect(control_, &RunControl::ended, this, &RunQueue::takeEnd, Qt::QueuedConnection);
  connect(control_, &RunControl::stateChanged, this, &RunQueue::startWaiting, Qt::QueuedConnection);
}

bool RunQueue::isFree() const {
  return !active_ && !control_->isLive() && control_->state() != RunState::preflight;
}

bool RunQueue::start(std::vector<QueuedRun> runs) {
  if (!isFree() || runs.empty()) return false;
  runs_ = std::move(runs);
  for (QueuedRun& run : runs_) run.asked = control_->setUp();
  at_ = 0;
  active_ = true;
  startNext();
  return true;
}

void RunQueue::add(QueuedRun run) {
  if (!active_) {
    runs_.clear();
    at_ = 0;
  }
  active_ = true;
  run.asked = control_->setUp();
  runs_.push_back(std::move(run));
  if (at_ + 1 == runs_.size() && !control_->isLive() && control_->state() != RunState::preflight)
    startNext();
  else
    Q_EMIT changed();
}

/// A queue may wait for a run outside it.
void RunQueue::startWaiting() {
  if (waits(at_) && !control_->isLive() && control_->state() != RunState::preflight) startNext();
}

bool RunQueue::waits(std::size_t index) const {
  return active_ && index < runs_.size() && runs_[index].state == QueuedState::waiting;
}

bool RunQueue::move(std::size_t index, int by) {
  const std::size_t to = index + static_cast<std::size_t>(by);  // wraps around below 0, to an index without a run
  if (!waits(index) || !waits(to)) return false;
  std::swap(runs_[index], runs_[to]);
  Q_EMIT changed();
  return true;
}

bool RunQueue::remove(std::size_t index) {
  if (!waits(index)) return false;
  runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(index));
  if (at_ >= runs_.size()) {
    active_ = false;
    Q_EMIT changed();
    Q_EMIT finished();
    return true;
  }
  Q_EMIT changed();
  return true;
}

void RunQueue::startNext() {
  for (; at_ < runs_.size(); ++at_) {
    if (runs_[at_].state != QueuedState::waiting) continue;
    runs_[at_].state = QueuedState::running;
    if (control_->startPlan(runs_[at_].plan, runs_[at_].asked)) {
      Q_EMIT changed();
      return;
    }
    runs_[at_].state = QueuedState::failed;
  }
  active_ = false;
  Q_EMIT changed();
  Q_EMIT finished();
}

void RunQueue::takeBegun(RunSeries* run) {
  if (active_ && at_ < runs_.size() && runs_[at_].state == QueuedState::running && !runs_[at_].run)
    runs_[at_].run = run;
}

void RunQueue::takeEnd(RunSeries* run, int exit_status) {
  if (!active_ || at_ >= runs_.size()) return;
  if (runs_[at_].run != run) return;
  runs_[at_].state = exit_status == 0          ? QueuedState::finished
                     : control_->endedByUser() ? QueuedState::stopped
                                               : QueuedState::failed;
  ++at_;
  if (control_->endedByUser()) leaveOutTheRest();
  startNext();
}

void RunQueue::cancel() {
  if (!active_) return;
  const bool none_runs = waits(at_);
  leaveOutTheRest();
  if (none_runs) {
    at_ = runs_.size();
    active_ = false;
  }
  Q_EMIT changed();
  if (none_runs) Q_EMIT finished();
}

void RunQueue::goOn() {
  const auto first = std::ranges::find(runs_, QueuedState::left_out, &QueuedRun::state);
  if (active_ || first == runs_.end()) return;
  at_ = static_cast<std::size_t>(first - runs_.begin());
  active_ = true;
  for (QueuedRun& queued : runs_)
    if (queued.state == QueuedState::left_out) queued.state = QueuedState::waiting;
  Q_EMIT changed();
  startWaiting();
}

void RunQueue::leaveOutTheRest() {
  for (QueuedRun& queued : runs_)
    if (queued.state == QueuedState::waiting) queued.state = QueuedState::left_out;
}

std::size_t RunQueue::waiting() const {
  return active_ ? count(QueuedState::waiting) : 0;
}

std::size_t RunQueue::count(QueuedState state) const {
  return static_cast<std::size_t>(std::ranges::count(runs_, state, &QueuedRun::state));
}

QString RunQueue::labelOf(std::size_t index) const {
  std::vector<NamedSpec> named;
  for (const QueuedRun& run : runs_) named.push_back({run.label, &run.plan.spec});
  return distinctNames(named).at(static_cast<qsizetype>(index));
}

QString RunQueue::countedNames(QueuedState state) const {
  constexpr qsizetype most = 3;
  QStringList names;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].state == state) names << labelOf(i);
  const qsizetype all = names.size();
  QString which = names.mid(0, most).join(QStringLiteral("; "));
  if (all > most) which = tr("%1 and %2 more").arg(which).arg(all - most);
  //: How many runs, and which
  return tr("%1 (%2)").arg(all).arg(which);
}

QString RunQueue::sentenceOfOne(const QueuedRun& run) const {
  switch (run.state) {
    case QueuedState::finished:
      return tr("The run has finished");
    case QueuedState::stopped:
      return tr("You stopped the run");
    case QueuedState::left_out:
      return tr("The run was left out");
    default:
      return tr("The run did not finish");
  }
}

QString RunQueue::sentence() const {
  if (runs_.empty()) return {};
  const auto all = static_cast<int>(runs_.size());
  if (active_ && at_ < runs_.size()) {
    const int now = static_cast<int>(at_) + 1;
    if (runs_[at_].state == QueuedState::waiting)
      return waiting() == 1 ? tr("1 run waits for the one that trains")
                            : tr("%1 runs wait for the one that trains").arg(waiting());
    if (count(QueuedState::left_out) > 0) return tr("%1 is training, the others are left out").arg(labelOf(at_));
    const QString text = tr("Run %1 of %2: %3 is training").arg(now).arg(all).arg(labelOf(at_));
    return count(QueuedState::failed) > 0 ? tr("%1; %2 did not finish").arg(text, countedNames(QueuedState::failed))
                                          : text;
  }
  if (all == 1) return sentenceOfOne(runs_.front());
  QString text = tr("%1 of %2 runs finished").arg(count(QueuedState::finished)).arg(all);
  if (count(QueuedState::failed) > 0) text = tr("%1, %2 did not").arg(text, countedNames(QueuedState::failed));
  if (count(QueuedState::stopped) > 0) text = tr("%1, %2 stopped by you").arg(text, countedNames(QueuedState::stopped));
  if (const auto left = count(QueuedState::left_out)) text = tr("%1, %2 left out").arg(text).arg(left);
  return text;
}

}  // namespace accrue::ui
