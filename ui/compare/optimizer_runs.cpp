// SPDX-License-Identifier: GPL-3.0-or-later
#include "optimizer_runs.h"

#include "accrue/run/choice_names.h"
#include "kit/text.h"
#include "optimizer_runner.h"
#include "setup/findings_model.h"

namespace accrue::ui {

OptimizerRuns::OptimizerRuns(SpecDocument* document, OptimizerRunner* optimizers, RunQueue* queue, MessageBar* bar,
                             QObject* parent)
    : ComparedRuns(document, optimizers, queue, bar, parent), optimizers_(optimizers) {}

std::vector<ComparedRuns::Way> OptimizerRuns::ways() const {
  std::vector<Way> ways;
  if (!optimizers_->result()) return ways;
  for (const OptimizerPlan& answer : *optimizers_->result()) {
    const QString name = fromView(to_name(answer.kind));
    QString refusal;
    for (const Finding& finding : answer.findings)
      if (refusal.isEmpty() && finding.severity == Severity::error) refusal = findingText(finding);
    ways.push_back({name, name, answer.plan, refusal});
  }
  return ways;
}

}  // namespace accrue::ui
