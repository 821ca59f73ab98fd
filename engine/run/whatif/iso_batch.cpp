// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/whatif/iso_batch.h"

#include <algorithm>
#include <utility>

#include "accrue/run/fields/sample_lock.h"

namespace accrue {

namespace {

/// Data, tensor and pipeline ranks; the way has the other two factors.
std::vector<IsoWay> layouts(const RunSpec& spec, std::int64_t most_ranks) {
  const IsoWay own = way_of(spec);
  std::vector<IsoWay> all;
  if (own.tensor * own.pipeline == 1) {
    for (std::int64_t data = 1; data <= most_ranks; ++data) all.push_back({.data = data});
    if (own.data > most_ranks) all.push_back({.data = own.data});
    return all;
  }
  for (const std::int64_t pipeline : divisors_of(own.ranks()))
    for (const std::int64_t tensor : divisors_of(own.ranks() / pipeline))
      all.push_back({.data = own.ranks() / pipeline / tensor, .tensor = tensor, .pipeline = pipeline});
  return all;
}

RunSpec trial_of(const RunSpec& spec, const IsoWay& way) {
  RunSpec trial = with_way(spec, way);
  trial.run.updates = iso_updates;
  trial.run.epochs.reset();
  trial.run.samples.reset();
  trial.run.tokens.reset();
  trial.run.stop_when = RunMeasure::none;
  trial.run.tensorboard_dir.clear();
  trial.evaluate.every_updates = 0;
  trial.evaluate.every_micro_steps = 0;
  trial.evaluate.exactness_every = iso_updates;
  trial.checkpoint.every_updates = 0;
  trial.checkpoint.every_micro_steps = 0;
  trial.checkpoint.best = RunMeasure::none;
  return trial;
}

}  // namespace

IsoWay way_of(const RunSpec& spec) {
  return {spec.accumulation.micro_batch, spec.accumulation.steps, spec.parallel.data, spec.parallel.tensor,
          spec.parallel.pipeline};
}

RunSpec with_way(const RunSpec& spec, const IsoWay& way) {
  RunSpec other = spec;
  other.accumulation.micro_batch = way.micro_batch;
  other.accumulation.steps = way.steps;
  other.parallel.data = way.data;
  other.parallel.tensor = way.tensor;
  other.parallel.pipeline = way.pipeline;
  return other;
}

std::vector<IsoWay> iso_ways(const RunSpec& spec, std::int64_t most_ranks) {
  const std::int64_t samples = locked_samples(spec, SampleLock::per_update);
  std::vector<IsoWay> ways;
  if (samples < 1) return ways;
  for (IsoWay way : layouts(spec, most_ranks)) {
    if (samples % way.data != 0) continue;
    for (const std::int64_t micro : divisors_of(samples / way.data)) {
      way.micro_batch = micro;
      way.steps = samples / way.data / micro;
      ways.push_back(way);
    }
  }
  return ways;
}

std::vector<IsoPlan> plan_iso_ways(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries) {
  std::vector<IsoPlan> plans;
  for (const IsoWay& way : iso_ways(spec, host.cores)) {
    RunSpec trial = trial_of(spec, way);
    Preflight answer = preflight(trial, host, data, base_dir, libraries);
    if (!answer.plan) {
      // A model that ranks divide is not compared with one batch.
      trial.evaluate.exactness_every = 0;
      answer = preflight(trial, host, data, base_dir, libraries);
    }
    plans.push_back({way, std::move(answer.findings), std::move(answer.plan)});
  }
  return plans;
}

bool same_trial(const RunSpec& left, const RunSpec& right) {
  RunSpec named = left;
  named.run.name = right.run.name;
  return named == right;
}

}  // namespace accrue
