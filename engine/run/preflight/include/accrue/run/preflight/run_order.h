// SPDX-License-Identifier: Apache-2.0
// RunOrder: a plan with the supervisor's additions that make it a run. It is stored as plan.json, the only input of a
// rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

struct RunOrder {
  RunPlan plan;
  std::string run_id;
  std::filesystem::path run_dir;
  std::int64_t origin_ns = 0;             ///< CLOCK_MONOTONIC at the start of the run: origin of time_ns in events
  std::string resume_from;                ///< "newest", "step-100" or empty
  std::vector<std::int64_t> first_seq;    ///< per rank: seq of its next event after a resume
  std::string branched_from;              ///< id of the run whose checkpoint this one started from; empty: none
  std::vector<std::string> changed_keys;  ///< of the spec, compared with that run
  std::int64_t branched_at = -1;          ///< update of that checkpoint: the run counts its evaluations from there
  /// The same update, if its micro-steps had another size: the place is counted anew. -1: no.
  std::int64_t recounts_at = -1;
  bool interactive = false;  ///< a user can answer a pause
  bool paused = false;       ///< ranks hold before their first micro-step
  /// The spec's plug-in libraries as the supervisor found them; the ranks load no others.
  std::vector<PluginRecord> plugins;
};

/// Maximum size of a plan.json, for writing and reading. It contains inline data.
inline constexpr std::size_t max_plan_bytes = std::size_t{256} << 20;

std::string to_json(const RunOrder& order);
Result<RunOrder> run_order_from_json(const std::string& json);
Result<RunOrder> read_run_order(const std::filesystem::path& plan_file);
/// Writes an order's JSON whole, or leaves the file unchanged. Errors: larger than max_plan_bytes (config), disk.
Result<void> write_plan_file(const std::string& json, const std::filesystem::path& plan_file);

}  // namespace accrue
