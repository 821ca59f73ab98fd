// SPDX-License-Identifier: Apache-2.0
// The 43 fields and the origins of their values.
#include "accrue/run/megatron/megatron_fields.h"

#include <algorithm>
#include <utility>

#include "accrue/run/base/name_of.h"
#include "megatron_rules.h"
#include "megatron_values.h"
#include "spec_text.h"
#include "trimmed.h"

namespace accrue {

namespace {

using megatron_detail::is_none;

using Names = std::vector<std::string>;

#define ACCRUE_MEGATRON(name, group, ...) \
  { #name, "megatron." #name, MegatronGroup::group, __VA_ARGS__ }

const MegatronField fields[] = {
    ACCRUE_MEGATRON(tp_degree, layout, std::int64_t{1}, "MEGATRON_LM_TP_DEGREE"),
    ACCRUE_MEGATRON(pp_degree, layout, std::int64_t{1}, "MEGATRON_LM_PP_DEGREE"),
    ACCRUE_MEGATRON(num_micro_batches, step, std::int64_t{1}, "MEGATRON_LM_NUM_MICRO_BATCHES"),
    ACCRUE_MEGATRON(gradient_clipping, step, 1.0, "MEGATRON_LM_GRADIENT_CLIPPING"),
    ACCRUE_MEGATRON(sequence_parallelism, layout, false, "MEGATRON_LM_SEQUENCE_PARALLELISM"),
    ACCRUE_MEGATRON(recompute_activations, step, false, "MEGATRON_LM_RECOMPUTE_ACTIVATIONS"),
    ACCRUE_MEGATRON(use_distributed_optimizer, layout, false, "MEGATRON_LM_USE_DISTRIBUTED_OPTIMIZER"),
    ACCRUE_MEGATRON(pipeline_model_parallel_split_rank, layout, {}, {}),
    ACCRUE_MEGATRON(num_layers_per_virtual_pipeline_stage, layout, {}, {}),
    ACCRUE_MEGATRON(is_train_batch_min, data, true, {}),
    ACCRUE_MEGATRON(train_iters, length, {}, {}),
    ACCRUE_MEGATRON(train_samples, length, {}, {}),
    ACCRUE_MEGATRON(weight_decay_incr_style, schedule, std::string("constant"), {}),
    ACCRUE_MEGATRON(start_weight_decay, schedule, {}, {}),
    ACCRUE_MEGATRON(end_weight_decay, schedule, {}, {}),
    ACCRUE_MEGATRON(lr_decay_style, schedule, std::string("linear"), {}),
    ACCRUE_MEGATRON(lr_decay_iters, schedule, {}, {}),
    ACCRUE_MEGATRON(lr_decay_samples, schedule, {}, {}),
    ACCRUE_MEGATRON(lr_warmup_iters, schedule, {}, {}),
    ACCRUE_MEGATRON(lr_warmup_samples, schedule, {}, {}),
    ACCRUE_MEGATRON(lr_warmup_fraction, schedule, {}, {}),
    ACCRUE_MEGATRON(min_lr, schedule, 0.0, {}),
    ACCRUE_MEGATRON(consumed_samples, data, {}, {}),
    ACCRUE_MEGATRON(no_wd_decay_cond, parameters, {}, {}),
    ACCRUE_MEGATRON(scale_lr_cond, parameters, {}, {}),
    ACCRUE_MEGATRON(lr_mult, parameters, 1.0, {}),
    ACCRUE_MEGATRON(megatron_dataset_flag, data, false, {}),
    ACCRUE_MEGATRON(seq_length, data, {}, {}),
    ACCRUE_MEGATRON(encoder_seq_length, data, {}, {}),
    ACCRUE_MEGATRON(decoder_seq_length, data, {}, {}),
    ACCRUE_MEGATRON(tensorboard_dir, reports, {}, {}),
    ACCRUE_MEGATRON(set_all_logging_options, reports, false, {}),
    ACCRUE_MEGATRON(eval_iters, reports, std::int64_t{100}, {}),
    ACCRUE_MEGATRON(eval_interval, reports, std::int64_t{1000}, {}),
    ACCRUE_MEGATRON(return_logits, reports, false, {}),
    ACCRUE_MEGATRON(custom_train_step_class, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_train_step_kwargs, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_model_provider_function, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_prepare_model_function, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_megatron_datasets_provider_function, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_get_batch_function, hooks, {}, {}),
    ACCRUE_MEGATRON(custom_loss_function, hooks, {}, {}),
    ACCRUE_MEGATRON(other_megatron_args, others, {}, {}),
};

#undef ACCRUE_MEGATRON

class Resolver {
 public:
  Resolver(const MegatronSpec& given, const MegatronEnvironment& environment) {
    given_.megatron = given, read(environment);
  }

  ResolvedMegatron resolve(const MegatronFacts& facts) {
    override_fields();
    derive(facts);
    RunSpec spec;
    for (const MegatronValue& value : result_.values) value.field->spec_field().set(spec, value.value);
    result_.effective = std::move(spec.megatron);
    for (Finding& finding : check_megatron(result_, facts)) result_.findings.push_back(std::move(finding));
    return std::move(result_);
  }

 private:
  void read(const MegatronEnvironment& environment) {
    for (const MegatronField& field : fields) {
      MegatronValue& value = result_.values.emplace_back();
      value.field = &field;
      value.value = field.fallback;
      const SpecValue own = field.spec_field().get(given_);
      if (!is_none(own)) {
        check(field, own);
        value.value = own;
        value.origin = FieldOrigin::field;
      } else if (!field.environment.empty()) {
        if (const auto set = environment(field.environment.data())) take_variable(value, *set);
      }
    }
  }

  bool check(const MegatronField& field, const SpecValue& value, std::string_view from = {}) {
    auto problem = spec_detail::check_value(field.spec_field(), value);
    if (!problem) return true;
    if (!from.empty()) problem->message = std::string(from) + " " + problem->message, problem->fix_value.reset();
    result_.findings.push_back(std::move(*problem));
    return false;
  }

  void take_variable(MegatronValue& value, const std::string& set) {
    const MegatronField& field = *value.field;
    const auto parsed = megatron_detail::parse_value(field.spec_field().type, set);
    if (!parsed) {
      result_.findings.push_back(
          {.key = std::string(field.key),
           .message = "takes its value from the variable " + std::string(field.environment) + ", which does not fit",
           .found = spec_detail::in_quotes(set.substr(0, 60)),
           .expected = spec_detail::expected_text(field.spec_field())});
    } else if (check(field, *parsed, field.environment)) {
      value.value = *parsed;
      value.origin = FieldOrigin::environment;
      value.from = field.environment;
    }
  }

  MegatronValue& at(std::string_view name) { return *std::ranges::find(result_.values, name, field_name); }
  static std::string_view field_name(const MegatronValue& value) { return value.field->name; }

  void override_fields() {
    if (!given_.megatron.other_megatron_args) return;
    result_.arguments = read_megatron_arguments(*given_.megatron.other_megatron_args, result_.findings);
    for (const MegatronArgumentValue& argument : result_.arguments) {
      const std::string_view name = argument.argument->name;
      if (!argument.argument->field.empty()) override_field(argument.argument->field, name, argument.value);
      if (name == "recompute_granularity")
        override_field("recompute_activations", name, argument.value == SpecValue(std::string("selective")));
    }
  }

  void override_field(std::string_view field, std::string_view argument, const SpecValue& value) {
    MegatronValue& row = at(field);
    if (!check(*row.field, value, argument)) return;
    const bool given = row.origin == FieldOrigin::field || row.origin == FieldOrigin::environment;
    if (given && row.value != value)
      result_.findings.push_back({.severity = Severity::warning,
                                  .key = std::string(row.field->key),
                                  .message = "is overridden by " + std::string(argument) + " in other_megatron_args",
                                  .found = format_value(row.value),
                                  .expected = format_value(value)});
    row.value = value;
    row.origin = FieldOrigin::other_megatron_args;
    row.from = argument;
  }

  void derive(std::string_view name, SpecValue value, std::string_view from) {
    MegatronValue& row = at(name);
    row.value = std::move(value);
    row.origin = FieldOrigin::derived;
    row.from = from;
  }

  // A field that is None takes the other's value, if it has one.
  void follow(std::string_view name, std::string_view other) {
    if (is_none(at(name).value) && !is_none(at(other).value)) derive(name, at(other).value, other);
  }

  void derive(const MegatronFacts& facts) {
    if (at("sequence_parallelism").value == SpecValue(true) && at("tp_degree").value == SpecValue(std::int64_t{1}))
      derive("sequence_parallelism", false, "tp_degree = 1");
    follow("lr_decay_iters", "train_iters");
    follow("lr_decay_samples", "train_samples");
    if (facts.model && *facts.model != ModelKind::t5) {
      const bool bert = facts.model == ModelKind::bert;
      const std::string_view alias = bert ? "encoder_seq_length" : "decoder_seq_length";
      follow("seq_length", alias);
      follow(alias, "seq_length");
    } else if (facts.model == ModelKind::t5) {
      follow("encoder_seq_length", "seq_length");
      follow("seq_length", "encoder_seq_length");
    }
    if (auto* counts = std::get_if<std::vector<std::int64_t>>(&at("consumed_samples").value))
      if (!counts->empty() && counts->size() < 3) counts->resize(3, 0);
  }

  RunSpec given_;
  ResolvedMegatron result_;
};

}  // namespace

std::string_view title(MegatronGroup group) {
  return name_of<MegatronGroup::others>(
      group, {"Layout of the ranks", "The update", "Length of the run", "Rate and weight decay", "Groups of parameters",
              "Data", "Evaluation and logs", "A program's own parts", "Further arguments of Megatron-LM"});
}

std::string_view to_string(FieldOrigin origin) {
  return name_of<FieldOrigin::other_megatron_args>(
      origin, {"default", "derived", "environment", "field", "other_megatron_args"});
}

std::span<const MegatronField> megatron_fields() {
  return fields;
}

const MegatronField* find_megatron_field(std::string_view name) {
  const auto* found = std::ranges::find(fields, name, &MegatronField::name);
  return found == std::end(fields) ? nullptr : found;
}

bool has_megatron(const RunSpec& spec) {
  return spec.megatron != MegatronSpec();
}

bool has_megatron_fields(const RunSpec& spec) {
  RunSpec rest = spec;
  for (const MegatronField& field : megatron_fields())
    if (field.group == MegatronGroup::hooks) field.spec_field().set(rest, field.spec_field().get(RunSpec()));
  return has_megatron(rest);
}

std::optional<std::pair<std::string, std::string>> step_argument(std::string_view element) {
  const auto at = element.find('=');
  const std::string_view name = trimmed(element.substr(0, at));
  if (at == std::string_view::npos || name.empty()) return std::nullopt;
  return std::pair(std::string(name), std::string(trimmed(element.substr(at + 1))));
}

MegatronEnvironment empty_environment() {
  return [](const char*) { return std::nullopt; };
}

const MegatronValue& ResolvedMegatron::operator[](std::string_view name) const {
  return *std::ranges::find(values, name, [](const MegatronValue& value) { return value.field->name; });
}

const MegatronArgumentValue* ResolvedMegatron::argument(std::string_view name) const {
  const auto found =
      std::ranges::find(arguments, name, [](const MegatronArgumentValue& value) { return value.argument->name; });
  return found == arguments.end() ? nullptr : &*found;
}

ResolvedMegatron resolve_megatron_fields(const MegatronSpec& given, const MegatronEnvironment& environment,
                                         const MegatronFacts& facts) {
  return Resolver(given, environment).resolve(facts);
}

}  // namespace accrue
