// SPDX-License-Identifier: Apache-2.0
// RunPlan: every number that follows from a spec, the data and the host. The studio shows it before Run, plan.json
// records it, and the ranks follow it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/cost/rank_grid.h"
#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/facts/sample_order.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/lr_curve.h"
#include "accrue/run/window/weight_decay.h"

namespace accrue {

/// Inputs of a plan. Choices that depend on the host are already made.
struct PlanInputs {
  RunSpec spec;
  std::filesystem::path base_dir;  ///< folder of relative data paths
  DataFacts data;
  BackendKind backend = BackendKind::shm;  ///< never automatic
  std::int64_t threads_per_rank = 1;
  std::int64_t memory_per_rank = 0;      ///< bytes available to K1 memory_search; 0: unknown
  std::string weights_fingerprint = {};  ///< of model.weights (StartWeights); empty if the run starts from none
};

struct RunPlan : PlanInputs {
  AccumulationKnobs knobs;
  WindowShape window;
  SampleOrder order;
  RankGrid grid;
  LrCurve curve;
  WeightDecayCurve weight_decay;

  std::int64_t global_batch = 0;       ///< samples per full update, all ranks
  std::int64_t tokens_per_update = 0;  ///< of a full window; 0 if samples differ
  std::int64_t full_windows_per_epoch = 0;
  std::int64_t tail_micro_steps = 0;  ///< L mod N
  WindowTotals totals;
  std::int64_t warmup_updates = 0;  ///< the warm-up in each unit
  std::int64_t warmup_micro_steps = 0;
  std::int64_t warmup_samples = 0;

  std::int64_t parameter_count = 0;
  MemoryEstimate memory;         ///< of the fullest rank
  std::vector<RankCost> stages;  ///< by pipeline stage, whose ranks are alike
  double bubble = 0.0;           ///< fraction of a full window's time that a stage idles
  std::int64_t gradient_buckets = 0;
  std::int64_t wire_bytes_per_update = 0;  ///< over all axes, of the rank that sends most; the minimum

  /// The form's arithmetic line: "8 micro x 4 accum x 2 ranks = 64 samples per update; ...".
  std::string arithmetic() const;
};

/// Returns the derived numbers alone, for "plan --json" and run_started.
std::string plan_summary_json(const RunPlan& plan);
/// Returns the derived numbers as text for people, for "accrue-run plan".
std::string plan_report(const RunPlan& plan);

}  // namespace accrue
