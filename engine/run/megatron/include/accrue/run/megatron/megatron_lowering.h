// SPDX-License-Identifier: Apache-2.0
// Lowering of the plug-in's fields to the ordinary keys of a spec. All code after preflight reads ordinary keys alone,
// so a field does what its keys do. The result says which keys each field set, which code reads them, and why a field
// had no effect.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/megatron/megatron_fields.h"
#include "accrue/run/megatron/plugin_facts.h"

namespace accrue {

/// An ordinary key that is set by a field or an argument.
struct LoweredKey {
  std::string_view key;  ///< "parallel.tensor"
  SpecValue value;       ///< its new value
  std::string by;        ///< "tp_degree", or for an argument "other_megatron_args: hidden_dropout"
  bool changed = false;  ///< its value would differ without the plug-in
  bool differs = false;  ///< the spec sets the key to another value, which overrides a default of the plug-in

  /// Key to set for another value: "megatron.tp_degree", or for an argument "megatron.other_megatron_args".
  std::string field_key() const;
};

/// Effect of one field or argument.
struct MegatronEffect {
  std::string name;
  MegatronValue value;
  std::vector<LoweredKey> keys;
  std::string consumers;  ///< files that read the keys: "engine/train/boundary"; empty if none does
  std::string nothing;    ///< why it changed nothing; empty if it had an effect
  std::string remark;     ///< findings of the whole spec about the keys that it set; see remark_effects()
};

struct LoweredMegatron {
  RunSpec spec;                        ///< with the ordinary keys; fields with variables now hold the variables' values
  std::vector<MegatronEffect> fields;  ///< all 43 in order; empty if the spec has no plug-in
  std::vector<MegatronEffect> arguments;  ///< of other_megatron_args, in order, then those with a default here
  std::vector<Finding> findings;

  /// Returns the field or argument that set the key; nullptr if none did.
  const LoweredKey* setter_of(std::string_view key) const;
};

/// Sets the ordinary keys. If the spec sets a key to another value than a given field, that is an error that names
/// both; a default of the plug-in yields. Lowering twice changes nothing. `libraries`: plug-in libraries in which the
/// spec's names are looked up, with the sizes of their data sets. Pure.
LoweredMegatron lower_megatron(const RunSpec& spec, const MegatronEnvironment& environment,
                               std::span<const PluginFacts> libraries = {});

/// Returns the spec without the keys that its fields imply, so that a field can be changed and its keys follow.
/// Lowering restores them.
RunSpec without_lowered(const RunSpec& spec);

/// Keeps keys that a text explicitly sets to their default, which otherwise look left out. If a default of the plug-in
/// would override one, the field takes the key's value.
void keep_set_keys(SpecReading& reading);

/// Applies every --set to a spec that was read: keys implied by fields follow the fields that are set. If the text or a
/// --set gives a key its default and a field another value, the reading's findings refuse it. A spec that was lowered
/// and written gives the same result when it is read again.
void apply_sets(SpecReading& reading, std::span<const std::string> sets, const MegatronEnvironment& environment,
                std::span<const PluginFacts> libraries = {});

/// Attaches the warnings and notes of a preflight to their fields.
void remark_effects(LoweredMegatron& lowered, const std::vector<Finding>& findings);

/// Returns the table of "accrue-run plan SPEC --megatron".
std::string megatron_report(const LoweredMegatron& lowered);
std::string megatron_json(const LoweredMegatron& lowered);
/// Returns every field and argument with its type, default and meaning, for "accrue-run spec --megatron".
std::string megatron_reference();

}  // namespace accrue
