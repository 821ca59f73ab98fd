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
#include "accrue/run/plugin_facts.h"
#include "accrue/run/rank_cost.h"
#include "accrue/run/rank_grid.h"
#include "accrue/run/sample_order.h"
#include "accrue/run/weight_decay.h"

namespace accrue {

struct MemoryEstimate {  ///< bytes per rank
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  ///< of the micro-batches in flight
  std::int64_t buffers = 0;      ///< working memory of one operation
  std::int64_t process = 0;      ///< a rank before it holds anything
  std::int64_t total() const { return parameters + gradients + optimizer + activations + buffers + process; }
  bool operator==(const MemoryEstimate&) const = default;
};

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

/// What the supervisor adds to a plan to make it a run; together they are plan.json, and all that a rank is given.
struct RunOrder {
  RunPlan plan;
  std::string run_id;
  std::filesystem::path run_dir;
  std::int64_t origin_ns = 0;             ///< CLOCK_MONOTONIC at the run's zero: time_ns of events counts from here
  std::string resume_from;                ///< "newest", "step-100" or empty
  std::vector<std::int64_t> first_seq;    ///< per rank: seq to continue with after a resume
  std::string branched_from;              ///< id of the run whose checkpoint this one began with; empty = it began anew
  std::vector<std::string> changed_keys;  ///< of the spec, against that run's
  /// That checkpoint's update, where its micro-steps were of another size: the place is counted anew. -1 = no.
  std::int64_t recounts_at = -1;
  bool interactive = false;  ///< a user can answer a pause
  bool paused = false;       ///< ranks hold before their first micro-step
  /// The spec's plug-in libraries as the supervisor found them; the ranks load no others.
  std::vector<PluginRecord> plugins;
};

/// The largest plan.json that is written and read. Inline data are part of it.
inline constexpr std::size_t max_plan_bytes = std::size_t{256} << 20;

std::string to_json(const RunOrder& order);
Result<RunOrder> run_order_from_json(const std::string& json);
Result<RunOrder> read_run_order(const std::filesystem::path& plan_file);
/// Writes an order's JSON whole, or leaves the file as it was. Errors: larger than max_plan_bytes (config), disk.
Result<void> write_plan_file(const std::string& json, const std::filesystem::path& plan_file);
/// The derived numbers alone, for "plan --json" and run_started.
std::string plan_summary_json(const RunPlan& plan);
/// The derived numbers as text for people: what "accrue-run plan" prints.
std::string plan_report(const RunPlan& plan);

}  // namespace accrue
