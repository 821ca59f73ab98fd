// SPDX-License-Identifier: GPL-3.0-or-later
#include "compared_runs.h"

#include <utility>

#include "document/spec_document.h"
#include "live/run_queue.h"
#include "queue_message.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

/// A message that stays when the run begins that it speaks of.
constexpr const char* outrun = "outrun";

}  // namespace

ComparedRuns::ComparedRuns(SpecDocument* document, PreflightRunner* preflight, RunQueue* queue, MessageBar* bar,
                           QObject* parent)
    : QObject(parent), document_(document), preflight_(preflight), queue_(queue), bar_(bar) {
  connect(queue_, &RunQueue::changed, this, &ComparedRuns::showProgress);
  connect(queue_, &RunQueue::finished, this, &ComparedRuns::showEnd);
  connect(document_, &SpecDocument::fileChanged, this, [this] {
    if (!plans_ || document_->spec() == asked_) return;
    endPlanning();
    refuse(tr("Nothing was started, because another set-up was opened meanwhile"));
  });
}

void ComparedRuns::start(Variant variant) {
  if (!variant.ways || queue_->isActive() || plans_) return;
  variant_ = std::move(variant);
  asked_ = document_->spec();
  bar_->withdraw(QLatin1String(outrun));
  plans_ = new PlanAnswers<std::vector<RunWay>>(document_, preflight_, variant_.ways, this);
  connect(plans_, &PlanFollower::finished, this, &ComparedRuns::startCompared);
  plans_->refresh();
  Q_EMIT planningChanged();
}

void ComparedRuns::endPlanning() {
  plans_->disconnect(this);
  plans_->deleteLater();
  plans_ = nullptr;
  Q_EMIT planningChanged();
}

void ComparedRuns::refuse(const QString& why, const char* id) {
  bar_->post({QLatin1String(id), RunState::failed, why, {}, {}});
}

void ComparedRuns::startCompared() {
  if (!plans_->isCurrent()) return plans_->refresh();  // edited meanwhile
  const auto ways = plans_->result();
  endPlanning();
  if (!ways) return refuse(tr("The data cannot be read, so nothing can train on it"));
  if (!queue_->isFree()) return refuse(tr("Nothing was started, because another run has begun meanwhile"), outrun);
  queue(*ways);
}

void ComparedRuns::queue(const std::vector<RunWay>& ways) {
  left_out_.clear();
  std::vector<QueuedRun> runs;
  QString name = QString::fromStdString(document_->spec().run.name);
  if (name.isEmpty()) name = document_->displayName().section(QLatin1Char('.'), 0, 0);
  for (const RunWay& way : ways) {
    if (variant_.wanted && (!way.plan || !variant_.wanted(way))) continue;
    if (!way.plan) {
      left_out_ << tr("%1 is left out: %2").arg(way.name, way.refusal);
      continue;
    }
    QueuedRun queued{*way.plan, way.label};
    queued.plan.spec.run.name = QStringLiteral("%1, %2").arg(name, queued.label).toStdString();
    runs.push_back(std::move(queued));
  }
  if (runs.empty())
    return refuse(left_out_.isEmpty() ? tr("What was chosen is no longer one of the ways of this set-up")
                                      : left_out_.join(QStringLiteral(". ")));
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
