// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_runs.h"

#include <utility>

#include "accrue/run/choice_names.h"
#include "models/dialect_runner.h"
#include "models/findings_model.h"
#include "models/run_queue.h"
#include "models/run_text.h"
#include "models/spec_document.h"
#include "widgets/message_bar.h"

namespace accrue::ui {

namespace {

constexpr auto message_id = "queue";

}  // namespace

QString refusalOf(const DialectPlan& answer) {
  for (const Finding& finding : answer.findings)
    if (finding.severity == Severity::error) return findingText(finding);
  return {};
}

DialectRuns::DialectRuns(SpecDocument* document, DialectRunner* dialects, RunQueue* queue, MessageBar* bar,
                         QObject* parent)
    : QObject(parent), document_(document), dialects_(dialects), queue_(queue), bar_(bar) {
  connect(dialects_, &DialectRunner::finished, this, [this] {
    if (asked_ && dialects_->isCurrent()) startCompared();
  });
  connect(queue_, &RunQueue::changed, this, &DialectRuns::showProgress);
  connect(queue_, &RunQueue::finished, this, &DialectRuns::showEnd);
}

void DialectRuns::start() {
  if (queue_->isActive() || asked_) return;
  asked_ = true;
  dialects_->refresh();
}

void DialectRuns::startCompared() {
  asked_ = false;
  const auto& comparison = dialects_->result();
  left_out_.clear();
  std::vector<QueuedRun> runs;
  QString name = QString::fromStdString(document_->spec().run.name);
  if (name.isEmpty()) name = document_->displayName().section(QLatin1Char('.'), 0, 0);
  for (const Dialect dialect : all_dialects) {
    const DialectPlan* answer = comparison ? comparison->of(dialect) : nullptr;
    if (!answer) continue;
    if (!answer->plan) {
      left_out_ << tr("%1 is left out: %2").arg(fromView(system_name(dialect)), refusalOf(*answer));
      continue;
    }
    QueuedRun queued{*answer->plan, fromView(to_name(dialect))};
    queued.plan.spec.run.name = QStringLiteral("%1, %2").arg(name, queued.label).toStdString();
    runs.push_back(std::move(queued));
  }
  if (runs.empty()) {
    const QString why = left_out_.isEmpty() ? tr("The data cannot be read, so no dialect can train on it")
                                            : left_out_.join(QStringLiteral(". "));
    bar_->post({QLatin1String(message_id), RunState::failed, why, {}, {}});
    Q_EMIT refused();
    return;
  }
  Q_EMIT aboutToBegin();
  queue_->start(std::move(runs));
}

void DialectRuns::showProgress() {
  if (!queue_->isActive()) return;
  QStringList parts{queue_->sentence()};
  parts << left_out_;
  bar_->post({QLatin1String(message_id), RunState::running, parts.join(QStringLiteral(". ")), tr("Cancel the rest"),
              [this] { queue_->cancel(); }});
}

void DialectRuns::showEnd() {
  bool all = left_out_.isEmpty();
  for (const QueuedRun& run : queue_->runs()) all = all && run.state == QueuedState::finished;
  QStringList parts{queue_->sentence()};
  parts << left_out_;
  if (all) parts << tr("Their curves are drawn over samples");
  bar_->post({QLatin1String(message_id),
              all ? RunState::finished : RunState::degraded,
              parts.join(QStringLiteral(". ")),
              {},
              {}});
}

}  // namespace accrue::ui
