// SPDX-License-Identifier: Apache-2.0
// preflight: turns spec, host and data into a plan, or into every reason why there is none, each with its fix.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"
#include "accrue/run/weights/start_weights.h"

namespace accrue {

struct Preflight {
  std::optional<RunPlan> plan;    ///< set exactly if there is no error
  std::vector<Finding> findings;  ///< errors and warnings, all at once
};

/// Pure: touches no file and no device. `libraries`: plug-in libraries whose names [megatron] can use.
Preflight preflight(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                    const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries = {});

/// Does the same, and scans the data itself. A data error becomes a finding on data.path. The plan comes from
/// derive_plan() (plan_derivation.h).
Preflight preflight_files(const RunSpec& spec, const HostFacts& host, const std::filesystem::path& base_dir,
                          std::span<const PluginFacts> libraries = {});

/// Does the same for a spec whose weights were looked at before, or need not be: a branch has them in its checkpoint.
Preflight preflight_started(const SpecWithWeights& start, const HostFacts& host, const std::filesystem::path& base_dir,
                            std::span<const PluginFacts> libraries = {});

}  // namespace accrue
