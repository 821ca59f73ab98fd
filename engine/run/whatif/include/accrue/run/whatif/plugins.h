// SPDX-License-Identifier: Apache-2.0
// Ways in which ranks share a run or save memory, as plug-ins that can be switched: the keys that each sets, exclusions
// and requirements between them, and what each costs and saves. The rules are data, in the words of preflight's
// findings. Preflight of the spec with a plug-in decides whether it is possible.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/facts/data_facts.h"
#include "accrue/run/facts/host_facts.h"
#include "accrue/run/megatron/plugin_facts.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// The plug-ins, followed by other choices of a spec that some of them exclude.
enum class Capability {
  data,
  tensor,
  sequence,
  pipeline,
  zero,
  recompute,
  precision,
  dense_model,
  exactness_checks,
  bug,
  recorded_weights,
  early_clipping,   ///< each micro-step's gradients are clipped
  early_reduction,  ///< each micro-step's gradients are reduced
};
inline constexpr std::size_t plugin_count = 7;
inline constexpr std::array all_capabilities = {Capability::data,
                                                Capability::tensor,
                                                Capability::sequence,
                                                Capability::pipeline,
                                                Capability::zero,
                                                Capability::recompute,
                                                Capability::precision,
                                                Capability::dense_model,
                                                Capability::exactness_checks,
                                                Capability::bug,
                                                Capability::recorded_weights,
                                                Capability::early_clipping,
                                                Capability::early_reduction};
/// Returns the plug-ins: the first values.
std::span<const Capability> all_plugins();

std::string_view to_string(Capability capability);  ///< "data", "tensor", ..., "early_reduction"
std::string_view title_of(Capability capability);   ///< "Data parallelism"
/// Describes a plug-in in a sentence.
std::string_view help_of(Capability plugin);
/// Returns the keys of a plug-in; the first one switches it.
std::span<const std::string_view> keys_of(Capability plugin);

bool is_on(Capability capability, const RunSpec& spec);

/// A key and its value as --set takes it; an empty value clears the key.
struct CapabilitySetting {
  std::string_view key;
  std::string value;
  bool operator==(const CapabilitySetting&) const = default;
};
/// Settings that switch it on. A degree is the smallest that divides this spec's model, or 2 if none does.
std::vector<CapabilitySetting> settings_on(Capability capability, const RunSpec& spec);
/// Settings that switch a plug-in off, including those of keys that have no effect without it.
std::vector<CapabilitySetting> settings_off(Capability plugin);
RunSpec with_settings(RunSpec spec, std::span<const CapabilitySetting> settings);
/// Returns the spec with the plug-in toggled.
RunSpec switched(const RunSpec& spec, Capability plugin);

enum class Relation { excludes, needs };
struct CapabilityRule {
  Capability plugin;
  Relation relation;
  Capability other;
  std::string_view key;  ///< key of the finding by which preflight says the same
  std::string_view why;  ///< its sentence, with the key as the subject
  std::string text() const;
};
std::span<const CapabilityRule> capability_rules();
/// Returns the rule between two, whichever states it. If one needs a third that excludes the other, returns that rule.
/// nullptr if they are compatible.
const CapabilityRule* rule_between(Capability one, Capability other);

/// Cost of the rank with the most memory.
RankCost cost_of(const RunPlan& plan);
/// Bytes that leave a rank in one update, over all axes.
std::int64_t sent_bytes(const RankCost& cost);

struct PluginState {
  Capability plugin = Capability::data;
  bool on = false;
  std::string locked;  ///< if off: why it cannot be switched on; empty if it can
  std::string fault;   ///< if on: why the spec is refused for it; empty if it is not
  /// Cost with the plug-in minus cost without it. Empty if either is refused or its cost is unknown.
  std::optional<RankCost> difference;
};
struct PluginComparison {
  std::optional<RankCost> now;  ///< empty if the spec is refused, or if !cost_is_known()
  std::vector<PluginState> plugins;
};
/// Pure; takes the time of eight preflights.
PluginComparison compare_plugins(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                 const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries = {});

}  // namespace accrue
