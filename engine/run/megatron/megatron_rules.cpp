// SPDX-License-Identifier: Apache-2.0
// Rules of the plug-in's fields. A message has the form "FIELD: RULE (found THIS, expected THAT)" and names the field
// or fact on the other side.
#include "megatron_rules.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "accrue/run/fields/choice_names.h"
#include "spec_text.h"

namespace accrue {

namespace {

class Rules {
 public:
  Rules(const ResolvedMegatron& resolved, const MegatronFacts& facts)
      : resolved_(resolved), value_(resolved.effective), facts_(facts) {}

  std::vector<Finding> check() {
    check_ranks();
    check_stages();
    check_memory();
    check_length();
    check_rate();
    check_decay();
    check_sequences();
    check_reports();
    check_hooks();
    check_load();
    return std::move(findings_);
  }

 private:
  using Integer = std::int64_t;

  void add(Severity severity, std::string_view field, std::string message, std::string found, std::string expected) {
    findings_.push_back({.severity = severity,
                         .key = "megatron." + std::string(field),
                         .message = std::move(message),
                         .found = std::move(found),
                         .expected = std::move(expected)});
  }
  void refuse(std::string_view field, std::string message, std::string found = {}, std::string expected = {}) {
    add(Severity::error, field, std::move(message), std::move(found), std::move(expected));
  }
  void warn(std::string_view field, std::string message, std::string found = {}, std::string expected = {}) {
    add(Severity::warning, field, std::move(message), std::move(found), std::move(expected));
  }
  std::string shown(std::string_view field) const {
    return std::string(field) + " = " + format_value(resolved_[field].value);
  }
  bool was_given(std::string_view field) const { return resolved_[field].origin >= FieldOrigin::environment; }

  /// Checks that `divisor` divides `whole`, if known.
  void divides(std::string_view field, Integer divisor, const std::optional<Integer>& whole, std::string_view name) {
    if (divisor < 1 || !whole || *whole % divisor == 0) return;
    refuse(field, "must divide " + std::string(name), std::to_string(divisor),
           "a divisor of " + std::to_string(*whole));
  }

  void check_ranks() {
    const Integer tensor = *value_.tp_degree;
    const Integer ranks = tensor * *value_.pp_degree;
    divides("tp_degree", tensor, facts_.heads, "the attention heads");
    divides("tp_degree", tensor, facts_.width, "the width of the model");
    if (facts_.world && *facts_.world % ranks != 0)
      refuse("tp_degree", "times pp_degree must divide the ranks of the run",
             shown("tp_degree") + ", " + shown("pp_degree"), "a divisor of " + std::to_string(*facts_.world));
    if (resolved_["sequence_parallelism"].origin == FieldOrigin::derived)
      warn("sequence_parallelism", "is switched off: tp_degree is 1, so no ranks share the positions", "true", "false");
  }

  void check_stages() {
    const Integer stages = *value_.pp_degree;
    if (facts_.model != ModelKind::t5) divides("pp_degree", stages, facts_.layers, "the layers");
    if (const auto split = value_.pipeline_model_parallel_split_rank) {
      if (facts_.model && facts_.model != ModelKind::t5)
        refuse("pipeline_model_parallel_split_rank", "needs a model with an encoder and a decoder",
               "model.kind = " + spec_detail::in_quotes(to_name(*facts_.model)),
               "model.kind = \"t5\", or to leave it out");
      if (*split < 1 || *split >= stages)
        refuse("pipeline_model_parallel_split_rank", "must be at least 1 and below pp_degree", std::to_string(*split),
               shown("pp_degree"));
    }
    if (value_.num_layers_per_virtual_pipeline_stage) check_chunks(*value_.num_layers_per_virtual_pipeline_stage);
  }

  void check_chunks(Integer layers) {
    const std::string_view own = "num_layers_per_virtual_pipeline_stage";
    const Integer stages = *value_.pp_degree;
    if (value_.pipeline_model_parallel_split_rank)
      refuse(own, "excludes pipeline_model_parallel_split_rank: the stages of a T5 are not interleaved");
    if (stages < 2) return refuse(own, "needs a pipeline", shown("pp_degree"), "pp_degree of 2 or more");
    if (!facts_.layers || *facts_.layers % stages != 0) return;
    const Integer of_stage = *facts_.layers / stages;
    if (of_stage % layers != 0)
      return refuse(own, "must divide the layers of a stage, which are the model's divided by pp_degree",
                    std::to_string(layers), "a divisor of " + std::to_string(of_stage));
    if (of_stage == layers)
      return warn(own, "changes nothing: a stage has one chunk of all its layers", std::to_string(layers),
                  "fewer than " + std::to_string(of_stage));
    const auto* group = resolved_.argument("microbatch_group_size_per_virtual_pipeline_stage");
    const Integer together = group == nullptr ? stages : std::get<Integer>(group->value);
    const Integer micro = *value_.num_micro_batches;
    const Integer rest = together > 0 ? micro % together : 0;
    if (micro < stages || (rest != 0 && rest < stages))
      refuse("num_micro_batches",
             "must be a multiple of pp_degree where num_layers_per_virtual_pipeline_stage interleaves the stages",
             shown("num_micro_batches"), "a multiple of " + std::to_string(stages));
  }

  void check_memory() {
    const auto* granularity = resolved_.argument("recompute_granularity");
    const std::string how = granularity == nullptr ? "" : std::get<std::string>(granularity->value);
    if (granularity != nullptr && how != "full" && how != "selective")
      refuse("other_megatron_args", "recompute_granularity is not one of the choices", how, "full or selective");
    for (const std::string_view name : {"recompute_method", "recompute_num_layers"})
      if (resolved_.argument(name) != nullptr && how != "full")
        refuse("other_megatron_args",
               std::string(name) +
                   " needs recompute_granularity = full; recompute_activations recomputes the attention "
                   "of every layer",
               granularity == nullptr ? shown("recompute_activations") : "recompute_granularity = " + how);
    if (const auto* shared = resolved_.argument("distribute_saved_activations");
        shared != nullptr && std::get<bool>(shared->value)) {
      if (how != "full")
        refuse("other_megatron_args", "distribute_saved_activations needs recompute_granularity = full");
      if (*value_.sequence_parallelism)
        refuse("sequence_parallelism", "excludes distribute_saved_activations in other_megatron_args");
    }
  }

  void excludes(std::string_view field, std::string_view other) {
    refuse(field, "excludes " + std::string(other), shown(field) + ", " + shown(other), "one of the two");
  }
  bool counts(std::string_view field) const {
    const SpecValue& value = resolved_[field].value;
    return was_given(field) && value != SpecValue() && value != SpecValue(Integer{0}) && value != SpecValue(0.0);
  }

  void check_length() {
    if (value_.train_iters && value_.train_samples) return excludes("train_iters", "train_samples");
    const bool ramp = resolved_.argument("rampup_batch_size") != nullptr;
    for (const std::string_view in_samples : {"lr_decay_samples", "lr_warmup_samples"})
      if (value_.train_iters && counts(in_samples)) excludes("train_iters", in_samples);
    for (const std::string_view in_iters : {"lr_decay_iters", "lr_warmup_iters"})
      if (value_.train_samples && counts(in_iters)) excludes("train_samples", in_iters);
    if (counts("lr_decay_iters") && counts("lr_decay_samples")) excludes("lr_decay_iters", "lr_decay_samples");
    if (counts("lr_warmup_iters") && counts("lr_warmup_samples")) excludes("lr_warmup_iters", "lr_warmup_samples");
    for (const std::string_view in_iters : {"train_iters", "lr_decay_iters", "lr_warmup_iters"})
      if (ramp && counts(in_iters))
        refuse(in_iters,
               "excludes rampup_batch_size in other_megatron_args: iterations that grow have no length in samples",
               shown(in_iters), "train_samples, lr_decay_samples and lr_warmup_samples");
    if (value_.consumed_samples && (value_.consumed_samples->empty() || value_.consumed_samples->size() > 3))
      refuse("consumed_samples", "has one number each for training, validation and test",
             std::to_string(value_.consumed_samples->size()) + " numbers", "one to three");
  }

  void check_rate() {
    for (const std::string_view length : {"lr_warmup_iters", "lr_warmup_samples"})
      if (counts("lr_warmup_fraction") && counts(length)) excludes("lr_warmup_fraction", length);
    const auto shorter = [&](std::string_view warmup, const std::optional<Integer>& up, std::string_view decay,
                             const std::optional<Integer>& down) {
      if (up && down && *up >= *down)
        refuse(warmup, "must be less than " + std::string(decay), std::to_string(*up),
               "less than " + std::to_string(*down));
    };
    shorter("lr_warmup_iters", value_.lr_warmup_iters, "lr_decay_iters", value_.lr_decay_iters);
    shorter("lr_warmup_samples", value_.lr_warmup_samples, "lr_decay_samples", value_.lr_decay_samples);
    const auto* lr = resolved_.argument("lr");
    const std::optional<double> peak = lr == nullptr ? facts_.lr : std::optional(std::get<double>(lr->value));
    if (peak && *value_.min_lr > *peak)
      refuse("min_lr", "must not be above the peak of the rate", shown("min_lr"),
             "at most " + spec_detail::number_text(*peak));
    if (value_.scale_lr_cond && *value_.lr_mult == 1.0)
      warn("scale_lr_cond", "changes nothing: lr_mult is 1", "", "lr_mult other than 1");
    if (*value_.lr_mult != 1.0 && !value_.scale_lr_cond)
      warn("lr_mult", "changes nothing: scale_lr_cond names no parameters", shown("lr_mult"), "scale_lr_cond");
  }

  void check_decay() {
    const bool moves = value_.weight_decay_incr_style != "constant";
    for (const std::string_view end : {"start_weight_decay", "end_weight_decay"}) {
      const bool given = resolved_[end].value != SpecValue();
      if (given && !moves)
        refuse(end, "excludes weight_decay_incr_style = \"constant\"", shown(end), "to leave it out, or another style");
      if (!given && moves)
        refuse(end, "is needed by weight_decay_incr_style", shown("weight_decay_incr_style"), "a weight decay");
    }
    if (value_.start_weight_decay && value_.end_weight_decay && *value_.end_weight_decay < *value_.start_weight_decay)
      refuse("end_weight_decay", "must not be below start_weight_decay", shown("end_weight_decay"),
             "at least " + spec_detail::number_text(*value_.start_weight_decay));
  }

  void check_sequences() {
    const bool t5 = facts_.model == ModelKind::t5;
    const auto same = [&](std::string_view alias, const std::optional<Integer>& length) {
      if (value_.seq_length && length && *length != *value_.seq_length)
        refuse("seq_length", "and " + std::string(alias) + " are the same length of this model",
               shown("seq_length") + ", " + shown(alias), "one of them, or equal values");
    };
    if (facts_.model == ModelKind::bert || t5) same("encoder_seq_length", value_.encoder_seq_length);
    if (facts_.model && is_decoder_only(*facts_.model)) same("decoder_seq_length", value_.decoder_seq_length);
    if (facts_.model && is_decoder_only(*facts_.model) && counts("encoder_seq_length"))
      warn("encoder_seq_length", "changes nothing: a GPT has no encoder");
    if (facts_.model == ModelKind::bert && counts("decoder_seq_length"))
      warn("decoder_seq_length", "changes nothing: a BERT has no decoder");
    for (const std::string_view field : {"seq_length", "encoder_seq_length", "decoder_seq_length"}) {
      const auto* length = std::get_if<Integer>(&resolved_[field].value);
      if (length == nullptr || resolved_[field].origin == FieldOrigin::derived) continue;
      if (facts_.positions && *length > *facts_.positions)
        refuse(field, "is longer than the positions that the model has", std::to_string(*length),
               "at most " + std::to_string(*facts_.positions));
      if (*value_.sequence_parallelism && *length % *value_.tp_degree != 0)
        refuse(field, "must be a multiple of tp_degree where sequence_parallelism divides it", std::to_string(*length),
               "a multiple of " + std::to_string(*value_.tp_degree));
    }
  }

  void check_reports() {
    if (*value_.set_all_logging_options && !value_.tensorboard_dir)
      refuse("set_all_logging_options", "needs tensorboard_dir", "no tensorboard_dir", "a folder for the event files");
    if (*value_.return_logits && facts_.model && !is_decoder_only(*facts_.model))
      refuse("return_logits", "is for a GPT alone", "model.kind = " + spec_detail::in_quotes(to_name(*facts_.model)),
             "false");
  }

  void check_hooks() {
    if (value_.custom_prepare_model_function && !value_.custom_model_provider_function)
      refuse("custom_prepare_model_function", "needs custom_model_provider_function, whose chunks it wraps");
    if (!value_.custom_train_step_kwargs) return;
    if (!value_.custom_train_step_class && !value_.custom_train_step_kwargs->empty())
      refuse("custom_train_step_kwargs", "needs custom_train_step_class, which is made with them");
    std::set<std::string> names;
    for (const std::string& element : *value_.custom_train_step_kwargs) {
      const auto argument = step_argument(element);
      if (!argument)
        refuse("custom_train_step_kwargs", "has an element of another form", element, "name = value");
      else if (!names.insert(argument->first).second)
        refuse("custom_train_step_kwargs", "gives " + argument->first + " twice", element, "one value");
    }
  }

  void check_load() {
    const auto is_true = [this](std::string_view name) {
      const MegatronArgumentValue* given = resolved_.argument(name);
      return given != nullptr && std::get<bool>(given->value);
    };
    if (is_true("use_checkpoint_opt_param_scheduler") && is_true("override_opt_param_scheduler"))
      refuse("other_megatron_args",
             "use_checkpoint_opt_param_scheduler and override_opt_param_scheduler exclude each other: both say whose "
             "schedule goes on after a load",
             "both true", "one of the two");
  }

  const ResolvedMegatron& resolved_;
  const MegatronSpec& value_;
  const MegatronFacts& facts_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_megatron(const ResolvedMegatron& resolved, const MegatronFacts& facts) {
  return Rules(resolved, facts).check();
}

}  // namespace accrue
