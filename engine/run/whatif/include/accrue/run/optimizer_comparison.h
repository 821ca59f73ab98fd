// SPDX-License-Identifier: Apache-2.0
// One spec under each of Colossal-AI's optimizers, to be trained side by side.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/preflight.h"

namespace accrue {

/// In the order in which they are shown.
inline constexpr std::array<OptimizerKind, 7> colossalai_optimizers = {
    OptimizerKind::cpu_adam,   OptimizerKind::fused_adam, OptimizerKind::hybrid_adam, OptimizerKind::fused_sgd,
    OptimizerKind::fused_lamb, OptimizerKind::lamb,       OptimizerKind::lars};

/// The spec with another optimizer: settings that it does not have go back to their defaults; the rate, the decay and
/// everything else stay, so what differs is the rule.
RunSpec under_optimizer(const RunSpec& spec, OptimizerKind kind);

struct OptimizerPlan {
  OptimizerKind kind = OptimizerKind::adamw;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty where the spec is refused; findings say why
};

/// Each run measures its update norms, by which the rules differ where the losses do not yet. Pure, as preflight is;
/// takes as long as seven. `libraries`: what [megatron] can name.
std::vector<OptimizerPlan> compare_optimizers(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                              const std::filesystem::path& base_dir,
                                              std::span<const PluginFacts> libraries = {});

}  // namespace accrue
