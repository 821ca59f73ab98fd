// SPDX-License-Identifier: Apache-2.0
// From the plug-in's fields to the ordinary keys of a spec. Everything behind preflight reads ordinary keys alone, so
// what a field does is what its keys do; this says which keys each field set, which code reads them, and why a field
// that changed nothing did not.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/megatron_fields.h"
#include "accrue/run/plugin_facts.h"
#include "accrue/run/spec_io.h"

namespace accrue {

/// An ordinary key that follows from a field or from an argument.
struct LoweredKey {
  std::string_view key;  ///< "parallel.tensor"
  SpecValue value;       ///< what it now is
  std::string by;        ///< "tp_degree", or of an argument "other_megatron_args: hidden_dropout"
  bool changed = false;  ///< it would be another without the plug-in
  bool differs = false;  ///< the spec sets the key itself, to another value, and a default gave way to it

  /// The key to set for another value: "megatron.tp_degree", or of an argument "megatron.other_megatron_args".
  std::string field_key() const;
};

/// What became of one field, or of one argument.
struct MegatronEffect {
  std::string name;
  MegatronValue value;
  std::vector<LoweredKey> keys;
  std::string consumers;  ///< the files that read the keys: "engine/train/boundary"; empty where nothing does
  std::string nothing;    ///< why it changed nothing; empty where it changed something
  std::string remark;     ///< what the checks of the whole spec say of the keys that it set; see remark_effects()
};

struct LoweredMegatron {
  RunSpec spec;  ///< with the ordinary keys; the fields that variables stand for now hold what those gave
  std::vector<MegatronEffect> fields;     ///< the 43 in their order; empty where the spec has no plug-in
  std::vector<MegatronEffect> arguments;  ///< of other_megatron_args, in their order, then those with a default here
  std::vector<Finding> findings;

  /// The field or argument that set the key; nullptr where none did.
  const LoweredKey* setter_of(std::string_view key) const;
};

/// Sets the ordinary keys. A key that the spec sets to another value than a field which was given is an error that
/// names both; a default gives way to it. Lowering a second time changes nothing. `libraries`: those that the spec's
/// names are looked up in, which say how many samples their data sets have. Pure.
LoweredMegatron lower_megatron(const RunSpec& spec, const MegatronEnvironment& environment,
                               std::span<const PluginFacts> libraries = {});

/// The same spec without the keys that its fields give anyway, so that a field can be changed and its keys follow.
/// Lowering brings them back.
RunSpec without_lowered(const RunSpec& spec);

/// A key that a text sets to its default looks like one that is left out. Where a default of the plug-in would override
/// it, the field takes the value of the key.
void keep_set_keys(SpecReading& reading);

/// Applies every --set to a spec that was read: the keys that its fields give follow the fields that are set. A key
/// that the text or a --set gives its default, and a field another value, is refused in the reading's findings. A spec
/// that was lowered and written comes to the same when it is read again.
void apply_sets(SpecReading& reading, std::span<const std::string> sets, const MegatronEnvironment& environment,
                std::span<const PluginFacts> libraries = {});

/// Puts the warnings and notes of a preflight beside the fields that they are about.
void remark_effects(LoweredMegatron& lowered, const std::vector<Finding>& findings);

/// The table that "accrue-run plan SPEC --megatron" prints.
std::string megatron_report(const LoweredMegatron& lowered);
std::string megatron_json(const LoweredMegatron& lowered);
/// Every field and every argument with its type, default and meaning: what "accrue-run spec --megatron" prints.
std::string megatron_reference();

}  // namespace accrue
