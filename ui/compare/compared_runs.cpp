// SPDX-License-Identifier: GPL-3.0-or-later
#include "compared_runs.h"

#include <utility>

#include "document/plan_follower.h"
#include "document/spec_document.h"
#include "live/run_queue.h"
#include "queue_message.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

ComparedRuns::ComparedRuns(SpecDocument* document, PlanFollower* plans, Ways ways, RunQueue* queue, MessageBar* bar,
                           QObject* parent)
    : QObject(parent), document_(document), plans_(plans), ways_(std::move(ways)), queue_(queue), bar_(bar) {
  connect(plans_, &PlanFollower::finished, this, [this] {
    if (asked_ && plans_->isCurrent()) startCompared();
  });
  connect(queue_, &RunQueue::changed, this, &ComparedRuns::showProgress);
  connect(queue_, &RunQueue::finished, this, &ComparedRuns::showEnd);
}

void ComparedRuns::start() {
  if (queue_->isActive() || asked_) return;
  asked_ = true;
  plans_->refresh();
}

void ComparedRuns::startWith(Ways ways) {
  if (queue_->isActive() || asked_) return;
  ways_ = std::move(ways);
  start();
}

void ComparedRuns::startCompared() {
  asked_ = false;
  left_out_.clear();
  std::vector<QueuedRun> runs;
  QString name = QString::fromStdString(document_->spec().run.name);
  if (name.isEmpty()) name = document_->displayName().section(QLatin1Char('.'), 0, 0);
  for (RunWay& way : ways_()) {
    if (!way.plan) {
      left_out_ << tr("%1 is left out: %2").arg(way.name, way.refusal);
      continue;
    }
    QueuedRun queued{*std::move(way.plan), way.label};
    queued.plan.spec.run.name = QStringLiteral("%1, %2").arg(name, queued.label).toStdString();
    runs.push_back(std::move(queued));
  }
  if (runs.empty()) {
    const QString why = left_out_.isEmpty() ? tr("The data cannot be read, so nothing can train on it")
                                            : left_out_.join(QStringLiteral(". "));
    bar_->post({QStringLiteral("queue"), RunState::failed, why, {}, {}});
    Q_EMIT refused();
    return;
  }
  Q_EMIT aboutToBegin();
  queued_ = true;
  queue_->start(std::move(runs));
}

void ComparedRuns::showProgress() {
  if (queued_ && queue_->isActive()) post();
}

void ComparedRuns::showEnd() {
  if (!std::exchange(queued_, false)) return;
  post();
  Q_EMIT ended();
}

void ComparedRuns::post() {
  postQueue(bar_, queue_, left_out_, tr("Their curves are drawn over samples"), [this] {
    queued_ = true;
    queue_->goOn();
  });
}

}  // namespace accrue::ui
