// SPDX-License-Identifier: Apache-2.0
// The 43 fields of Accelerate's MegatronLMPlugin and their values. A given value holds, unless other_megatron_args
// overrides it. A field that is left out takes its environment variable, then a value derived from other fields, then
// its default. Every value records its origin.
// Source: accelerate v1.9.0, utils/dataclasses.py.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/fields/findings.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/megatron/megatron_arguments.h"

namespace accrue {

/// Subject of a field; the form shows a section for each.
enum class MegatronGroup {
  layout,      ///< division of the model over ranks
  step,        ///< contents of an update
  length,      ///< length of the run
  schedule,    ///< rate and weight decay
  parameters,  ///< parameters with their own rate or decay
  data,
  reports,  ///< evaluation, logs, logits
  hooks,    ///< a program's own classes and functions
  others    ///< other_megatron_args
};
std::string_view title(MegatronGroup group);

/// One field of the plug-in. The field table of a spec has its type, range, unit and help under `key`.
struct MegatronField {
  std::string_view name;  ///< "tp_degree"
  std::string_view key;   ///< "megatron.tp_degree"
  MegatronGroup group;
  SpecValue fallback;            ///< the default; monostate for None
  std::string_view environment;  ///< "MEGATRON_LM_TP_DEGREE"; empty if there is no variable

  const SpecField& spec_field() const { return *find_field(key); }
};

/// Returns all 43, in the order of the plug-in's signature.
std::span<const MegatronField> megatron_fields();
/// Returns the field; nullptr if there is none with that name.
const MegatronField* find_megatron_field(std::string_view name);

/// Origin of a value, weakest first.
enum class FieldOrigin { fallback, derived, environment, field, other_megatron_args };
/// Returns "default", "derived", "environment", "field" or "other_megatron_args".
std::string_view to_string(FieldOrigin origin);

struct MegatronValue {
  const MegatronField* field = nullptr;
  SpecValue value;  ///< monostate: None
  FieldOrigin origin = FieldOrigin::fallback;
  std::string from;  ///< the variable, argument or fields that gave it; empty for a field's own value
};

/// Returns a variable's value; none if it is not set. accrue::environment (program.h) is one.
using MegatronEnvironment = std::function<std::optional<std::string>(const char*)>;
/// An environment without variables.
MegatronEnvironment empty_environment();

/// Whether the spec sets any field of the plug-in.
bool has_megatron(const RunSpec& spec);
/// Whether it sets any field except the program's own classes and functions (custom_...). Only then do omitted fields
/// act, by their variables and defaults.
bool has_megatron_fields(const RunSpec& spec);

/// Splits an element of custom_train_step_kwargs such as "alpha = 0.25" into name and value; none if it has another
/// form.
std::optional<std::pair<std::string, std::string>> step_argument(std::string_view element);

/// Facts to which the rules compare the fields. A rule with missing facts is not checked.
struct MegatronFacts {
  std::optional<ModelKind> model;
  std::optional<std::int64_t> world;   ///< ranks of the run
  std::optional<std::int64_t> layers;  ///< of a T5: of its encoder
  std::optional<std::int64_t> decoder_layers;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> positions;  ///< maximum sequence length of the model
  std::optional<double> lr;               ///< peak of the schedule
};

struct ResolvedMegatron {
  MegatronSpec effective;             ///< every value; only a None is left out
  std::vector<MegatronValue> values;  ///< all 43, in the order of the fields
  std::vector<MegatronArgumentValue> arguments;
  std::vector<Finding> findings;  ///< keys as in a spec, "megatron.tp_degree"

  const MegatronValue& operator[](std::string_view name) const;
  /// Returns the argument with that name, if given.
  const MegatronArgumentValue* argument(std::string_view name) const;
  /// Returns its value, which must have type T.
  template <typename T>
  T argument_or(std::string_view name, T otherwise) const {
    const MegatronArgumentValue* found = argument(name);
    return found == nullptr ? otherwise : std::get<T>(found->value);
  }
  bool ok() const { return !has_errors(findings); }
};

/// Resolves the fields and checks them: each by itself, against one another and against the facts. Pure.
ResolvedMegatron resolve_megatron_fields(const MegatronSpec& given, const MegatronEnvironment& environment,
                                         const MegatronFacts& facts = {});

}  // namespace accrue
