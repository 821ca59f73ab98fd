// SPDX-License-Identifier: Apache-2.0
// RunPlan: every number that follows from a spec, the data and the host. What the studio shows before Run, what
// plan.json records, and what a rank obeys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/accumulation_window.h"
#include "accrue/run/data_facts.h"
#include "accrue/run/host_facts.h"
#include "accrue/run/lr_curve.h"
#include "accrue/run/rank_cost.h"
#include "accrue/run/rank_grid.h"
#include "accrue/run/sample_order.h"
#include "accrue/run/weight_decay.h"

namespace accrue {

/// What a plan follows from. Choices that depend on the host are taken.
struct PlanInputs {
  RunSpec spec;
  std::filesystem::path base_dir;  ///< relative data paths start here
  DataFacts data;
  BackendKind backend = BackendKind::shm;  ///< never automatic
  std::int64_t threads_per_rank = 1;
  std::int64_t memory_per_rank = 0;  ///< bytes that K1 memory_search may count on; 0 = not known
};

struct RunPlan : PlanInputs {
  AccumulationKnobs knobs;
  WindowShape window;
  SampleOrder order;
  RankGrid grid;
  LrCurve curve;
  WeightDecayCurve weight_decay;

  std::int64_t global_batch = 0;       ///< samples per full update, all ranks
  std::int64_t tokens_per_update = 0;  ///< of a full window; 0 where samples differ
  std::int64_t full_windows_per_epoch = 0;
  std::int64_t tail_micro_steps = 0;  ///< L mod N
  WindowTotals totals;
  std::int64_t warmup_updates = 0;  ///< the warm-up in every unit
  std::int64_t warmup_micro_steps = 0;
  std::int64_t warmup_samples = 0;

  std::int64_t parameter_count = 0;
  MemoryEstimate memory;         ///< of the fullest rank
  std::vector<RankCost> stages;  ///< by pipeline stage, whose ranks are alike
  double bubble = 0.0;           ///< part of a full window's time that a stage idles
  std::int64_t gradient_buckets = 0;
  std::int64_t wire_bytes_per_update = 0;  ///< over all axes, by the rank that sends most, at the minimum

  /// "8 micro x 4 accum x 2 ranks = 64 samples per update; ..." The form's arithmetic line.
  std::string arithmetic() const;
};

/// The derived numbers alone, for "plan --json" and run_started.
std::string plan_summary_json(const RunPlan& plan);
/// The derived numbers as text for people: what "accrue-run plan" prints.
std::string plan_report(const RunPlan& plan);

}  // namespace accrue
