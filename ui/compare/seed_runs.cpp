// SPDX-License-Identifier: GPL-3.0-or-later
#include "seed_runs.h"

#include "seed_runner.h"
#include "setup/findings_model.h"

namespace accrue::ui {

SeedRuns::SeedRuns(SpecDocument* document, SeedRunner* seeds, RunQueue* queue, MessageBar* bar, QObject* parent)
    : ComparedRuns(document, seeds, queue, bar, parent), seeds_(seeds) {}

std::vector<ComparedRuns::Way> SeedRuns::ways() const {
  std::vector<Way> ways;
  if (!seeds_->result()) return ways;
  for (const SeedPlan& answer : *seeds_->result()) {
    QString refusal;
    for (const Finding& finding : answer.findings)
      if (refusal.isEmpty() && finding.severity == Severity::error) refusal = findingText(finding);
    const QString label = tr("seed %1").arg(answer.seed);
    ways.push_back({label, label, answer.plan, refusal});
  }
  return ways;
}

}  // namespace accrue::ui
