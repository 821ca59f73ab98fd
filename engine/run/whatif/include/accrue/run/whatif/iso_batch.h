// SPDX-License-Identifier: Apache-2.0
// All ways to one number of samples per update: every micro-batch, N and number of ranks with the same product. They
// train the same, up to rounding, and differ in time and memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "accrue/run/preflight/preflight.h"

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

/// Returns all ways of the spec's samples per update, sorted by layout and then by micro-batch. With data-parallel
/// ranks alone: 1 to most_ranks of them, and the spec's own number. With tensor or pipeline ranks: every division of
/// the spec's ranks among the three axes.
std::vector<IsoWay> iso_ways(const RunSpec& spec, std::int64_t most_ranks);

/// A way as a short run: it ends after `updates`, writes and evaluates nothing, and compares its last window with one
/// batch if possible.
struct IsoPlan {
  IsoWay way;
  std::vector<Finding> findings;
  std::optional<RunPlan> plan;  ///< empty if preflight refuses the way; findings say why
};

inline constexpr std::int64_t iso_updates = 10;

/// Pure, like preflight; takes the time of one per way. `libraries`: plug-in libraries whose names [megatron] can use.
std::vector<IsoPlan> plan_iso_ways(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                   const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries = {});

/// Whether two specs are the same way of the same short run, regardless of their names.
bool same_trial(const RunSpec& left, const RunSpec& right);

}  // namespace accrue
