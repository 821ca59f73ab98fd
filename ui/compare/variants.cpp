// SPDX-License-Identifier: GPL-3.0-or-later
#include "variants.h"

#include <algorithm>
#include <utility>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/preflight/preflight.h"
#include "accrue/run/whatif/optimizer_comparison.h"
#include "document/findings_model.h"
#include "kit/number_text.h"
#include "kit/text.h"

namespace accrue::ui {

namespace {

QString firstError(const std::vector<Finding>& findings) {
  const auto found = std::ranges::find(findings, Severity::error, &Finding::severity);
  return found == findings.end() ? QString() : findingText(*found);
}

/// Synthetic data are generated from the seed, and an index is ordered by it.
bool followSeed(const DataSpec& data) {
  return data.kind == DataKind::synthetic || data.kind == DataKind::indexed;
}

}  // namespace

DialectComparison compareDialects(const PlanFollower::Question& asked) {
  return compare_dialects(asked.spec, asked.host, *asked.data, asked.base_dir, compared_steps, asked.libraries);
}

std::vector<IsoPlan> planProducts(const PlanFollower::Question& asked) {
  return plan_iso_ways(asked.spec, asked.host, *asked.data, asked.base_dir, asked.libraries);
}

std::vector<RunWay> inDialects(const PlanFollower::Question& asked) {
  const DialectComparison comparison = compareDialects(asked);
  std::vector<RunWay> ways;
  for (const Dialect dialect : all_dialects)
    if (const DialectPlan* answer = comparison.of(dialect))
      ways.push_back({fromView(to_name(dialect)), fromView(system_name(dialect)), answer->plan, refusalOf(*answer)});
  return ways;
}

std::vector<RunWay> withOptimizers(const PlanFollower::Question& asked) {
  std::vector<RunWay> ways;
  for (OptimizerPlan& each : compare_optimizers(asked.spec, asked.host, *asked.data, asked.base_dir, asked.libraries)) {
    const QString name = fromView(to_name(each.kind));
    ways.push_back({name, name, std::move(each.plan), firstError(each.findings)});
  }
  return ways;
}

std::vector<RunWay> asProducts(const PlanFollower::Question& asked) {
  std::vector<RunWay> ways;
  for (IsoPlan& each : planProducts(asked))
    ways.push_back({wayText(each.way), wayText(each.way), std::move(each.plan), firstError(each.findings)});
  return ways;
}

RunWays underSeeds(std::optional<int> count) {
  if (!count) return {};
  return [count = *count](const PlanFollower::Question& asked) {
    std::vector<RunWay> ways;
    RunSpec spec = asked.spec;
    const bool follow = followSeed(lower_megatron(spec, environment_of(asked.host), asked.libraries).spec.data);
    for (int i = 0; i < count; ++i, ++spec.run.seed) {
      const bool scans = follow && i > 0;
      Preflight answer = scans ? preflight_files(spec, asked.host, asked.base_dir, asked.libraries)
                               : preflight(spec, asked.host, *asked.data, asked.base_dir, asked.libraries);
      const QString label = tr("seed %1").arg(spec.run.seed);
      ways.push_back({label, label, std::move(answer.plan), firstError(answer.findings)});
    }
    return ways;
  };
}

QString refusalOf(const DialectPlan& answer) {
  return firstError(answer.findings);
}

QString wayText(const IsoWay& way) {
  QString ranks = way.ranks() == 1 ? tr("1 rank") : tr("%1 ranks").arg(way.ranks());
  if (way.tensor * way.pipeline > 1)
    //: Ranks along the data, tensor and pipeline axes
    ranks = tr("%1 data, %2 tensor, %3 pipeline").arg(way.data).arg(way.tensor).arg(way.pipeline);
  //: One way to make the samples of an update; %3 is its ranks
  return tr("micro %1 \u00D7 N %2 \u00D7 %3").arg(groupedNumber(way.micro_batch), groupedNumber(way.steps), ranks);
}

}  // namespace accrue::ui
