// SPDX-License-Identifier: Apache-2.0
// MegatronLMPlugin of Accelerate: its 43 fields, and what they come to. A field has the value that was given for it,
// unless other_megatron_args override it; one that was left out takes its environment variable, then what follows from
// other fields, then its default. Every value knows where it came from.
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

#include "accrue/run/findings.h"
#include "accrue/run/megatron_arguments.h"
#include "accrue/run/run_spec.h"
#include "accrue/run/spec_fields.h"

namespace accrue {

/// What a field is about; the form shows a section each.
enum class MegatronGroup {
  layout,      ///< how ranks share the model
  step,        ///< what an update consists of
  length,      ///< how long a run is
  schedule,    ///< rate and weight decay
  parameters,  ///< which parameters have a rate or decay of their own
  data,
  reports,  ///< evaluation, logs, logits
  hooks,    ///< a program's own classes and functions
  others    ///< other_megatron_args
};
std::string_view title(MegatronGroup group);

/// One field of the plug-in. Its type, range, unit and help stand in the field table of a spec, under key.
struct MegatronField {
  std::string_view name;  ///< "tp_degree"
  std::string_view key;   ///< "megatron.tp_degree"
  MegatronGroup group;
  SpecValue fallback;            ///< the default; monostate where it is None
  std::string_view environment;  ///< "MEGATRON_LM_TP_DEGREE"; empty where no variable stands for it

  const SpecField& spec_field() const { return *find_field(key); }
};

/// All 43 in the order of the plug-in's signature.
std::span<const MegatronField> megatron_fields();
/// nullptr where there is none of that name.
const MegatronField* find_megatron_field(std::string_view name);

/// Where a value came from, weakest first.
enum class FieldOrigin { fallback, derived, environment, field, other_megatron_args };
/// "default", "derived", "environment", "field", "other_megatron_args".
std::string_view to_string(FieldOrigin origin);

struct MegatronValue {
  const MegatronField* field = nullptr;
  SpecValue value;  ///< monostate: None
  FieldOrigin origin = FieldOrigin::fallback;
  std::string from;  ///< the variable, the argument or the fields that gave it; empty for a field's own value
};

/// The variable's value; none where it is not set. accrue::environment (program.h) is one.
using MegatronEnvironment = std::function<std::optional<std::string>(const char*)>;
/// An environment in which nothing is set.
MegatronEnvironment empty_environment();

/// Whether the spec sets any field of the plug-in.
bool has_megatron(const RunSpec& spec);
/// Whether it sets any beside the program's own classes and functions (custom_...). Only then do fields that are left
/// out act, by their variables and defaults.
bool has_megatron_fields(const RunSpec& spec);

/// Name and value of an element of custom_train_step_kwargs, "alpha = 0.25"; none where it has another form.
std::optional<std::pair<std::string, std::string>> step_argument(std::string_view element);

/// What the rules compare the fields with. A rule whose facts are missing is not checked.
struct MegatronFacts {
  std::optional<ModelKind> model;
  std::optional<std::int64_t> world;   ///< ranks of the run
  std::optional<std::int64_t> layers;  ///< of a T5: of its encoder
  std::optional<std::int64_t> decoder_layers;
  std::optional<std::int64_t> width;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> positions;  ///< longest sequence that the model takes
  std::optional<double> lr;               ///< peak of the schedule
};

struct ResolvedMegatron {
  MegatronSpec effective;             ///< every value; left out only what is None
  std::vector<MegatronValue> values;  ///< the 43, in the order of the fields
  std::vector<MegatronArgumentValue> arguments;
  std::vector<Finding> findings;  ///< keys are those of a spec, "megatron.tp_degree"

  const MegatronValue& operator[](std::string_view name) const;
  /// The argument of that name, if it was given.
  const MegatronArgumentValue* argument(std::string_view name) const;
  /// Its value, which is of its type.
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
