// SPDX-License-Identifier: Apache-2.0
// A spec on the command line: a file and the keys that --set changes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/branch.h"
#include "accrue/run/dialect_comparison.h"
#include "accrue/run/megatron_lowering.h"
#include "accrue/run/run_plan.h"

namespace accrue::cli {

struct SpecInput {
  std::string file;
  std::vector<std::string> sets;
  std::vector<std::string> plugins;  ///< libraries that register what the spec names
};

struct PlannedInput : RunPlan {
  std::vector<PluginFacts> libraries;
};

/// Reads, validates and plans; every finding goes to standard error. Empty when the spec is refused.
std::optional<PlannedInput> plan_from(const SpecInput& input);
/// The plan of a branch: the spec of the run that it leaves, with the keys that "sets" change; its libraries, unless
/// others are given. Likewise.
std::optional<PlannedInput> branch_plan(const BranchPoint& from, const std::vector<std::string>& sets,
                                        std::vector<std::string> plugins);
/// The plan of a spec that is refused for nothing but the memory that it needs: its numbers show where that goes.
std::optional<RunPlan> plan_beyond_memory(const SpecInput& input);
/// The plan of a spec that was not read from a file of its own; relative paths start in base_dir. Errors go to standard
/// error, and are without a place. Empty when the spec is refused.
std::optional<RunPlan> plan_of(const RunSpec& spec, const std::filesystem::path& base_dir);
/// The same run, ended after so many updates; what depends on the whole run's length (MMEngine's last window) stays.
std::optional<PlannedInput> limited_plan(const PlannedInput& plan, std::int64_t updates);
/// The fields of the plug-in and what they come to, whatever else is wrong with the spec; every finding about them goes
/// to standard error. Empty when the spec cannot be read.
std::optional<LoweredMegatron> megatron_from(const SpecInput& input);
/// Reads and validates, and plans under each dialect. Empty when the spec cannot be read, its data neither, or when no
/// dialect takes it.
std::optional<DialectComparison> comparison_from(const SpecInput& input);

}  // namespace accrue::cli
