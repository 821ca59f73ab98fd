// SPDX-License-Identifier: Apache-2.0
// A spec on the command line: a file and the keys that --set changes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/megatron/megatron_lowering.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/record/branch.h"
#include "accrue/run/whatif/dialect_comparison.h"

namespace accrue::cli {

struct SpecInput {
  std::string file;
  std::vector<std::string> sets;
  std::vector<std::string> plugins;  ///< libraries for the names in the spec
};

struct PlannedInput : RunPlan {
  std::vector<PluginFacts> libraries;
};

/// Reads, validates and plans; every finding goes to standard error. Empty if the spec is refused.
std::optional<PlannedInput> plan_from(const SpecInput& input);
/// Plans a branch: the spec of the original run, with the keys that "sets" change, and its libraries unless others are
/// given. Errors as above.
std::optional<PlannedInput> branch_plan(const BranchPoint& from, const std::vector<std::string>& sets,
                                        std::vector<std::string> plugins);
/// Plans a spec that is refused only because of its memory: its numbers show where the memory goes.
std::optional<RunPlan> plan_beyond_memory(const SpecInput& input);
/// Plans a spec that has no file of its own; relative paths start in base_dir. Errors go to standard error, without a
/// place. Empty if the spec is refused.
std::optional<RunPlan> plan_of(const RunSpec& spec, const std::filesystem::path& base_dir);
/// Returns the same run, ended after `updates` updates; properties of the whole run's length (MMEngine's last window)
/// stay.
std::optional<PlannedInput> limited_plan(const PlannedInput& plan, std::int64_t updates);
/// Resolves the fields of the plug-in, whatever else is wrong with the spec; every finding about them goes to standard
/// error. Empty if the spec cannot be read.
std::optional<LoweredMegatron> megatron_from(const SpecInput& input);
/// Reads, validates, and plans under each dialect. Empty if the spec or its data cannot be read, or if no dialect
/// accepts it.
std::optional<DialectComparison> comparison_from(const SpecInput& input);

}  // namespace accrue::cli
