// SPDX-License-Identifier: GPL-3.0-or-later
#include "compared_runs.h"

#include <utility>

#include "document/spec_document.h"
#include "live/run_queue.h"
#include "queue_message.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

ComparedRuns::ComparedRuns(SpecDocument* document, PreflightRunner* preflight, RunQueue* queue, MessageBar* bar,
                           QObject* parent)
    : QObject(parent), document_(document), preflight_(preflight), queue_(queue), bar_(bar) {
  connect(queue_, &RunQueue::changed, this, &ComparedRuns::showProgress);
  connect(queue_, &RunQueue::finished, this, &ComparedRuns::showEnd);
}

void ComparedRuns::start(Variant variant) {
  if (!variant.ways || queue_->isActive() || plans_) return;
  variant_ = std::move(variant);
  plans_ = new PlanAnswers<std::vector<RunWay>>(document_, preflight_, variant_.ways, this);
  connect(plans_, &PlanFollower::finished, this, &ComparedRuns::startCompared);
  plans_->refresh();
}

void ComparedRuns::startCompared() {
  if (!plans_->isCurrent()) return plans_->refresh();  // edited meanwhile
  const auto ways = plans_->result();
  plans_->deleteLater();
  plans_ = nullptr;
  left_out_.clear();
  std::vector<QueuedRun> runs;
  QString name = QString::fromStdString(document_->spec().run.name);
  if (name.isEmpty()) name = document_->displayName().section(QLatin1Char('.'), 0, 0);
  const std::vector<RunWay> none;
  for (const RunWay& way : ways ? *ways : none) {
    if (variant_.wanted && (!way.plan || !variant_.wanted(way))) continue;
    if (!way.plan) {
      left_out_ << tr("%1 is left out: %2").arg(way.name, way.refusal);
      continue;
    }
    QueuedRun queued{*way.plan, way.label};
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
  Q_EMIT aboutToBegin(QLatin1String(variant_.plot));
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
