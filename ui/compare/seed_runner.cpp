// SPDX-License-Identifier: GPL-3.0-or-later
#include "seed_runner.h"

#include <utility>

#include "accrue/run/megatron_lowering.h"
#include "accrue/run/preflight.h"

namespace accrue::ui {

namespace {

/// Synthetic data are made from the seed, and an index is put in order by it.
bool followSeed(const DataSpec& data) {
  return data.kind == DataKind::synthetic || data.kind == DataKind::indexed;
}

std::vector<SeedPlan> underSeeds(RunSpec spec, int count, const HostFacts& host, const DataFacts& data,
                                 const std::filesystem::path& base_dir, const std::vector<PluginFacts>& libraries) {
  std::vector<SeedPlan> plans;
  const bool follow = followSeed(lower_megatron(spec, environment_of(host), libraries).spec.data);
  for (int i = 0; i < count; ++i, ++spec.run.seed) {
    const bool scans = follow && i > 0;
    Preflight answer =
        scans ? preflight_files(spec, host, base_dir, libraries) : preflight(spec, host, data, base_dir, libraries);
    plans.push_back({spec.run.seed, std::move(answer.findings), std::move(answer.plan)});
  }
  return plans;
}

}  // namespace

SeedRunner::SeedRunner(SpecDocument* document, PreflightRunner* preflight, QObject* parent)
    : SeedRunner(document, preflight, std::make_shared<std::atomic<int>>(0), parent) {}

SeedRunner::SeedRunner(SpecDocument* document, PreflightRunner* preflight, std::shared_ptr<std::atomic<int>> count,
                       QObject* parent)
    : PlanFollower(
          document, preflight,
          [this, count](const Question& asked) -> std::function<void()> {
            std::shared_ptr<const std::vector<SeedPlan>> result;
            if (asked.data)
              result = std::make_shared<std::vector<SeedPlan>>(
                  underSeeds(asked.spec, *count, asked.host, *asked.data, asked.base_dir, asked.libraries));
            return [this, result] { result_ = result; };
          },
          parent),
      count_(std::move(count)) {}

}  // namespace accrue::ui
