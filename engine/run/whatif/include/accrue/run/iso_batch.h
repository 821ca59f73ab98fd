// SPDX-License-Identifier: Apache-2.0
// One product in all its ways: every micro-batch, N and number of ranks that give an update the same samples. They
// train the same, as far as sums are exact, and differ in time and memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/preflight.h"

namespace accrue {

struct IsoWay {
  std::int64_t micro_batch = 1;
  std::int64_t steps = 1;
  std::int64_t data = 1;
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t ranks() const { return data * tensor * pipeline; }
  bool operator==(const IsoWay&) const = default;
};

IsoWay way_of(const RunSpec& spec);
RunSpec with_way(const RunSpec& spec, const IsoWay& way);

/// All ways of the spec's samples per update, by layout and then by micro-batch. With data-parallel ranks alone: 1 to
/// most_ranks of them, and the spec's own. With tensor or pipeline ranks: every division of the spec's ranks among the
/// three axes.
std::vector<IsoWay> iso_ways(const RunSpec& spec, std::int64_t most_ranks);

/// A way as a short run: it ends after `updates`, writes and evaluates nothing, and compares its last window with one
/// batch where that is possible.
struct IsoPlan {
  IsoWay way;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty where preflight refuses the way; findings say why
};

inline constexpr std::int64_t iso_updates = 10;

/// Pure, as preflight is; takes as long as one for each way. `libraries`: what [megatron] can name.
std::vector<IsoPlan> plan_iso_ways(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries = {});

/// Whether two specs are the same way of the same short run, whatever they are called.
bool same_trial(const RunSpec& left, const RunSpec& right);

}  // namespace accrue
