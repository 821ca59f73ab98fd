// SPDX-License-Identifier: Apache-2.0
// RunOrder: a plan and what the supervisor adds to make it a run. It is plan.json, and all that a rank is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "accrue/run/plugin_facts.h"
#include "accrue/run/run_plan.h"

namespace accrue {

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

}  // namespace accrue
