// SPDX-License-Identifier: GPL-3.0-or-later
#include "dialect_runs.h"

#include "accrue/run/choice_names.h"
#include "dialect_runner.h"
#include "kit/text.h"
#include "setup/findings_model.h"

namespace accrue::ui {

QString refusalOf(const DialectPlan& answer) {
  for (const Finding& finding : answer.findings)
    if (finding.severity == Severity::error) return findingText(finding);
  return {};
}

DialectRuns::DialectRuns(SpecDocument* document, DialectRunner* dialects, RunQueue* queue, MessageBar* bar,
                         QObject* parent)
    : ComparedRuns(document, dialects, queue, bar, parent), dialects_(dialects) {}

std::vector<ComparedRuns::Way> DialectRuns::ways() const {
  std::vector<Way> ways;
  const auto& comparison = dialects_->result();
  for (const Dialect dialect : all_dialects)
    if (const DialectPlan* answer = comparison ? comparison->of(dialect) : nullptr)
      ways.push_back({fromView(to_name(dialect)), fromView(system_name(dialect)), answer->plan, refusalOf(*answer)});
  return ways;
}

}  // namespace accrue::ui
