// SPDX-License-Identifier: Apache-2.0
// One spec under each of Colossal-AI's optimizers, to be trained side by side.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/preflight/preflight.h"

namespace accrue {

/// In display order.
inline constexpr std::array<OptimizerKind, 7> colossalai_optimizers = {
    OptimizerKind::cpu_adam,   OptimizerKind::fused_adam, OptimizerKind::hybrid_adam, OptimizerKind::fused_sgd,
    OptimizerKind::fused_lamb, OptimizerKind::lamb,       OptimizerKind::lars};

/// Returns the spec with another optimizer. Settings that it lacks return to their defaults; the rate, the decay and
/// everything else stay, so only the update rule differs.
RunSpec under_optimizer(const RunSpec& spec, OptimizerKind kind);

struct OptimizerPlan {
  OptimizerKind kind = OptimizerKind::adamw;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty if the spec is refused; findings say why
};

/// Each run measures its update norms, in which the rules differ before their losses do. Pure, like preflight; takes
/// the time of seven. `libraries`: plug-in libraries whose names [megatron] can use.
std::vector<OptimizerPlan> compare_optimizers(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                              const std::filesystem::path& base_dir,
                                              std::span<const PluginFacts> libraries = {});

}  // namespace accrue
