// SPDX-License-Identifier: Apache-2.0
// The ways in which ranks share a run or spare memory, as plug-ins that are switched on and off: what each writes into
// a spec, what excludes or needs what, and what each costs and saves. The rules are data, in the words of preflight's
// findings; whether a spec can have a plug-in is preflight's answer for the spec with it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/data_facts.h"
#include "accrue/run/host_facts.h"
#include "accrue/run/plugin_facts.h"
#include "accrue/run/run_plan.h"

namespace accrue {

/// The plug-ins, and behind them choices elsewhere in a spec that some of them exclude.
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
/// The first of them.
std::span<const Capability> all_plugins();

std::string_view to_string(Capability capability);  ///< "data", "tensor", ..., "early_reduction"
std::string_view title_of(Capability capability);   ///< "Data parallelism"
/// What a plug-in does, as a sentence.
std::string_view help_of(Capability plugin);
/// The keys that set how a plug-in works, the one that switches it first.
std::span<const std::string_view> keys_of(Capability plugin);

bool is_on(Capability capability, const RunSpec& spec);

/// A key and its value as --set takes it; an empty value clears the key.
struct CapabilitySetting {
  std::string_view key;
  std::string value;
  bool operator==(const CapabilitySetting&) const = default;
};
/// What switches it on: a degree is the smallest that divides this spec's model, or 2 where none does.
std::vector<CapabilitySetting> settings_on(Capability capability, const RunSpec& spec);
/// What switches a plug-in off, with whatever has no meaning without it.
std::vector<CapabilitySetting> settings_off(Capability plugin);
RunSpec with_settings(RunSpec spec, std::span<const CapabilitySetting> settings);
/// The spec with the plug-in on if it is off, and the other way round.
RunSpec switched(const RunSpec& spec, Capability plugin);

enum class Relation { excludes, needs };
struct CapabilityRule {
  Capability plugin;
  Relation relation;
  Capability other;
  std::string_view key;  ///< of the finding by which preflight says the same
  std::string_view why;  ///< its sentence, of which the key is the subject
  std::string text() const;
};
std::span<const CapabilityRule> capability_rules();
/// The rule between two, whichever of them states it; where one needs a third that excludes the other, that rule.
/// nullptr where they go together.
const CapabilityRule* rule_between(Capability one, Capability other);

/// Of the rank that holds most.
RankCost cost_of(const RunPlan& plan);
/// Bytes that leave a rank in one update, along all axes.
std::int64_t sent_bytes(const RankCost& cost);

struct PluginState {
  Capability plugin = Capability::data;
  bool on = false;
  std::string locked;  ///< off, and why it cannot be switched on; empty if it can
  std::string fault;   ///< on, and why the spec is refused for it; empty if it is not
  /// With the plug-in less without it. Empty where either is refused or its cost is not known.
  std::optional<RankCost> difference;
};
struct PluginComparison {
  std::optional<RankCost> now;  ///< empty where the spec is refused, and where !cost_is_known()
  std::vector<PluginState> plugins;
};
/// Pure; takes as long as eight preflights.
PluginComparison compare_plugins(const RunSpec& spec, const HostFacts& host, const DataFacts& data,
                                 const std::filesystem::path& base_dir, std::span<const PluginFacts> libraries = {});

}  // namespace accrue
