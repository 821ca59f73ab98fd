// SPDX-License-Identifier: Apache-2.0
// One pass over the fields sets every key. Lengths in updates become samples here, by the samples of a full update.
#include "accrue/run/megatron/megatron_lowering.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "accrue/run/data/data_split.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/megatron/megatron_blend.h"
#include "accrue/run/window/batch_size.h"
#include "megatron_consumers.h"
#include "megatron_rules.h"
#include "megatron_values.h"
#include "spec_text.h"

namespace accrue {

namespace {

using megatron_detail::is_none;
using megatron_detail::set_to_another;

using Integer = std::int64_t;
using Texts = std::vector<std::string>;

constexpr std::string_view arguments_field = "other_megatron_args";

MegatronFacts facts_of(const RunSpec& spec) {
  const bool transformer = spec.model.kind != ModelKind::linear && spec.model.kind != ModelKind::mlp;
  MegatronFacts facts{.model = spec.model.kind, .lr = spec.optimizer.lr};
  if (!transformer) return facts;
  facts.layers = spec.model.layers;
  facts.width = spec.model.width;
  facts.heads = spec.model.heads;
  if (spec.model.kind == ModelKind::t5) facts.decoder_layers = spec.model.decoder_layers.value_or(spec.model.layers);
  return facts;
}

class Lowering {
 public:
  Lowering(const RunSpec& spec, const MegatronEnvironment& environment, std::span<const PluginFacts> libraries)
      : given_(spec), libraries_(libraries) {
    result_.spec = spec;
    // Arguments about the model are facts for the rules about fields.
    const ResolvedMegatron first = resolve_megatron_fields(spec.megatron, environment);
    RunSpec model = spec;
    for (const MegatronArgumentValue& argument : first.arguments)
      if (const SpecField* field = find_field(argument.argument->key);
          field && field->section() == "model" && field->type == FieldType::integer)
        field->set(model, argument.value);
    resolved_ = resolve_megatron_fields(spec.megatron, environment, facts_of(model));
    result_.findings = resolved_.findings;
  }

  LoweredMegatron lower() {
    for (const MegatronValue& value : resolved_.values)
      result_.fields.push_back({.name = std::string(value.field->name), .value = value});
    for (const MegatronArgumentValue& argument : resolved_.arguments)
      result_.arguments.push_back({.name = std::string(argument.argument->name)});
    if (resolved_.ok() && !has_megatron_fields(given_)) {
      lower_own_parts();
    } else if (resolved_.ok()) {
      lower_arguments();
      lower_loss_scale();
      lower_ranks();
      lower_update();
      lower_length();
      lower_rate();
      lower_groups();
      lower_data();
      lower_reports();
      lower_hooks();
    }
    for (MegatronEffect& effect : result_.fields) finish(effect);
    for (MegatronEffect& effect : result_.arguments) finish(effect);
    if (has_megatron_fields(given_)) keep_variables();
    return std::move(result_);
  }

 private:
  MegatronEffect& row(std::string_view name) { return *std::ranges::find(result_.fields, name, &MegatronEffect::name); }
  const MegatronSpec& value() const { return resolved_.effective; }

  void refuse(std::string key, std::string message, std::string found = {}, std::string expected = {},
              std::optional<std::string> fix = {}) {
    result_.findings.push_back({.key = std::move(key),
                                .message = std::move(message),
                                .found = std::move(found),
                                .expected = std::move(expected),
                                .fix_value = std::move(fix)});
  }

  /// Returns the value in the key's own type; integers are numbers too.
  static std::optional<SpecValue> fitting(const SpecField& field, const SpecValue& value) {
    if (field.type == FieldType::real)
      if (const auto* whole = std::get_if<Integer>(&value)) return SpecValue(static_cast<double>(*whole));
    if (field.type == FieldType::texts)
      if (const auto* text = std::get_if<std::string>(&value)) return SpecValue(Texts{*text});
    return value;
  }

  void set(std::string_view name, std::string_view key, const SpecValue& wanted) {
    MegatronEffect& effect = row(name);
    set(effect, key, wanted, "megatron." + std::string(name), effect.name);
  }

  void set(MegatronEffect& effect, std::string_view key, const SpecValue& wanted, const std::string& own_key,
           const std::string& by) {
    const SpecField* field = find_field(key);
    const SpecValue target = *fitting(*field, wanted);
    if (auto problem = spec_detail::check_value(*field, target)) {
      refuse(own_key, by + " gives " + std::string(key) + ", which " + problem->message, problem->found,
             problem->expected);
      return;
    }
    const SpecValue left_out = field->get(RunSpec());
    const SpecValue current = field->get(given_);
    LoweredKey lowered{.key = field->key, .value = target, .by = by};
    if (current != left_out && current != target) {
      if (effect.value.origin < FieldOrigin::environment) {
        lowered.value = current;
        lowered.differs = true;
        effect.keys.push_back(std::move(lowered));
        return;
      }
      const std::string from = effect.value.origin == FieldOrigin::environment ? effect.value.from : by;
      refuse(std::string(key), set_to_another(from, lowered.field_key()), format_value(current), format_value(target),
             std::string());
    }
    lowered.changed = target != left_out;
    field->set(result_.spec, target);
    effect.keys.push_back(std::move(lowered));
  }

  void nothing(std::string_view name, std::string why) { row(name).nothing = std::move(why); }

  // ---- other_megatron_args -------------------------------------------------------------------------------------

  void set_argument(MegatronEffect& effect, std::string_view key, const SpecValue& wanted) {
    set(effect, key, wanted, "megatron." + std::string(arguments_field),
        std::string(arguments_field) + ": " + effect.name);
  }
  void refuse_argument(const MegatronEffect& effect, const std::string& message, std::string found = {},
                       std::string expected = {}) {
    refuse("megatron." + std::string(arguments_field), effect.name + " " + message, std::move(found),
           std::move(expected));
  }

  void lower_arguments() {
    for (std::size_t i = 0; i < resolved_.arguments.size(); ++i) {
      const MegatronArgumentValue& given = resolved_.arguments[i];
      MegatronEffect& effect = result_.arguments[i];
      const MegatronArgument& argument = *given.argument;
      effect.value = {.field = find_megatron_field(arguments_field),
                      .value = given.value,
                      .origin = FieldOrigin::other_megatron_args};
      if (!argument.field.empty())
        effect.nothing = "it sets the field " + std::string(argument.field);
      else if (!argument.only.empty())
        effect.nothing = "Accrue does this in any case";
      else if (argument.key.empty())
        effect.nothing = argument.why;
      else
        lower_argument(argument, given.value, effect);
    }
  }

  void lower_argument(const MegatronArgument& argument, const SpecValue& given, MegatronEffect& effect) {
    const std::string_view name = argument.name;
    const auto whole = [&] { return std::get<Integer>(given); };
    const auto word = [&] { return std::get<std::string>(given); };
    if (name == "global_batch_size") {
      lower_global_batch(whole(), effect);
    } else if (name == "calculate_per_token_loss") {
      set_argument(effect, argument.key, std::get<bool>(given) ? std::string("tokens") : std::string("true_size"));
    } else if (name == "optimizer") {
      if (word() == "adam" || word() == "sgd")
        set_argument(effect, argument.key, std::string(word() == "adam" ? "adamw" : "sgd"));
      else
        refuse_argument(effect, "is not one of the choices", word(), "adam or sgd");
    } else if (name == "fp16" || name == "bf16") {
      if (name == "bf16" && std::get<bool>(given) && is_given_true("fp16"))
        refuse_argument(effect, "and fp16 exclude each other: both say what model.dtype is", "both true",
                        "one of the two");
      else if (std::get<bool>(given))
        set_argument(effect, argument.key, std::string(name == "fp16" ? "float16" : "bfloat16"));
      else
        effect.nothing = "model.dtype is what the spec says";
    } else if (name == "loss_scale") {
      lower_constant_scale(given, effect);
    } else if (name == "initial_loss_scale") {
      set_argument(effect, argument.key, given);
    } else if (name == "lr_wsd_decay_style") {
      set_argument(effect, argument.key, word() == "minus_sqrt" ? std::string("minus-square-root") : word());
    } else if (name == "lr_wsd_decay_iters" || name == "lr_wsd_decay_samples") {
      lower_wsd(whole(), name.ends_with("iters"), effect);
    } else if (name == "ffn_hidden_size") {
      if (const Integer inner = 4 * width(); whole() != inner)
        refuse_argument(effect, "must be 4 x model.width: the inner layer of a block has that width",
                        std::to_string(whole()), std::to_string(inner));
      effect.nothing = "Accrue does this in any case";
    } else if (name == "distributed_timeout_minutes") {
      set_argument(effect, argument.key, static_cast<double>(whole()) * 60.0);
    } else if (name == "train_data_path") {
      lower_training(std::get<Texts>(given), effect);
    } else if (name == "dataloader_type" && word() == "external") {
      refuse_argument(effect, "is not offered with this value: data of a program's own are given to its own loop",
                      word(), "single or cyclic");
    } else if (name == "data_path") {
      lower_blend(std::get<Texts>(given), "data.paths", "data.weights", effect);
    } else if (name == "valid_data_path") {
      lower_blend(std::get<Texts>(given), "data.validation_paths", "data.validation_weights", effect);
    } else {
      lower_alike(argument, given, effect);
    }
  }

  /// A constant scale. An update that overflows is skipped.
  void lower_constant_scale(const SpecValue& given, MegatronEffect& effect) {
    if (const std::string why = constant_scale_conflict(resolved_.arguments); !why.empty())
      return refuse_argument(effect, why, "both", "one of the two");
    set_argument(effect, "optimizer.loss_scale", given);
    if (std::get<double>(given) == 0.0) return;
    set_argument(effect, "optimizer.min_loss_scale", given);
    set_argument(effect, "optimizer.loss_scale_window", Integer{1'000'000'000});
    if (!given_.accumulation.knobs.overflow) set_argument(effect, "accumulation.overflow", std::string("hold"));
  }

  /// float16 uses Megatron-LM's own scaling values, unless an argument overrides them.
  void lower_loss_scale() {
    if (result_.spec.model.dtype != Dtype::float16 || resolved_.argument("loss_scale") != nullptr) return;
    set_default("initial_loss_scale", MegatronLossScale::initial_loss_scale);
    if (result_.spec.optimizer.loss_scale == 0.0) return;
    set_default("min_loss_scale", MegatronLossScale::min_loss_scale);
    set_default("loss_scale_window", MegatronLossScale::loss_scale_window);
    set_default("hysteresis", MegatronLossScale::hysteresis);
  }

  void set_default(std::string_view name, const SpecValue& value) {
    const MegatronArgument& argument = *find_megatron_argument(name);
    if (is_given_by_argument(argument.key)) return;
    MegatronEffect& effect = result_.arguments.emplace_back();
    effect.name = name;
    effect.value = {.field = find_megatron_field(arguments_field), .value = value};
    set_argument(effect, argument.key, value);
  }

  /// Two arguments for one key must agree.
  void lower_alike(const MegatronArgument& argument, const SpecValue& given, MegatronEffect& effect) {
    for (const MegatronArgumentValue& other : resolved_.arguments)
      if (other.argument != &argument && other.argument->key == argument.key && other.value != given &&
          other.argument->name > argument.name)
        refuse_argument(effect,
                        "and " + std::string(other.argument->name) + " are one here: " + std::string(argument.key),
                        format_value(given) + " and " + format_value(other.value), "equal values");
    set_argument(effect, argument.key, given);
  }

  void lower_global_batch(Integer batch, MegatronEffect& effect) {
    const Integer of_step = result_.spec.parallel.data * micro_batch();
    if (batch < 1 || of_step < 1 || batch % of_step != 0)
      return refuse_argument(effect, "must be a multiple of parallel.data x accumulation.micro_batch",
                             std::to_string(batch), "a multiple of " + std::to_string(of_step));
    const Integer steps = batch / of_step;
    if (row("num_micro_batches").value.origin >= FieldOrigin::environment && *value().num_micro_batches != steps)
      return refuse_argument(effect, "comes to another num_micro_batches than the field has", std::to_string(steps),
                             std::to_string(*value().num_micro_batches));
    set_argument(effect, "accumulation.steps", steps);
    steps_by_batch_ = true;
  }

  void lower_wsd(Integer length, bool in_updates, MegatronEffect& effect) {
    if (in_updates && resolved_.argument("lr_wsd_decay_samples") != nullptr)
      return refuse_argument(effect, "and lr_wsd_decay_samples exclude each other: both give schedule.decay_fraction",
                             "both", "one of the two");
    const auto horizon = in_updates ? value().lr_decay_iters : value().lr_decay_samples;
    if (!horizon)
      return refuse_argument(effect, std::string("needs ") + (in_updates ? "lr_decay_iters" : "lr_decay_samples") +
                                         " or the length of the run, of which it is a part");
    if (length < 1 || length > *horizon)
      return refuse_argument(effect, "must be a part of the whole length", std::to_string(length),
                             "from 1 to " + std::to_string(*horizon));
    set_argument(effect, "schedule.decay_fraction", static_cast<double>(length) / static_cast<double>(*horizon));
  }

  /// Reads "0.3 a 0.7 b", or paths alone.
  void lower_blend(const Texts& list, std::string_view paths_key, std::string_view weights_key,
                   MegatronEffect& effect) {
    const auto blend = read_megatron_blend(list);
    if (!blend)
      return refuse_argument(effect, blend.error().message, blend.error().where,
                             "paths, or weight, path, weight, path");
    if (blend->paths.empty())
      return refuse_argument(effect, "names no path", "", "paths, or weight, path, weight, path");
    set_argument(effect, paths_key, blend->paths);
    if (!blend->weights.empty()) set_argument(effect, weights_key, blend->weights);
  }

  /// Handles training data as a whole: evaluation has its own data or none.
  void lower_training(const Texts& list, MegatronEffect& effect) {
    for (const std::string_view other : {"data_path", "split"})
      if (resolved_.argument(other) != nullptr)
        return refuse_argument(
            effect,
            "and " + std::string(other) + " exclude each other: data_path is divided by " + "split, and this is not",
            "both", "one of the two");
    lower_blend(list, "data.paths", "data.weights", effect);
    if (resolved_.argument("valid_data_path") == nullptr) set_argument(effect, "data.split", std::string("1, 0, 0"));
  }

  bool is_given_true(std::string_view name) const {
    const MegatronArgumentValue* given = resolved_.argument(name);
    return given != nullptr && given->value == SpecValue(true);
  }
  bool is_given_by_argument(std::string_view key) const {
    return std::ranges::any_of(resolved_.arguments,
                               [key](const MegatronArgumentValue& given) { return given.argument->key == key; });
  }
  Integer width() const {
    const MegatronArgumentValue* given = resolved_.argument("hidden_size");
    return given == nullptr ? result_.spec.model.width : std::get<Integer>(given->value);
  }
  Integer micro_batch() const {
    const MegatronArgumentValue* given = resolved_.argument("micro_batch_size");
    return given == nullptr ? result_.spec.accumulation.micro_batch : std::get<Integer>(given->value);
  }

  // ---- the fields ----------------------------------------------------------------------------------------------

  void lower_ranks() {
    set("tp_degree", "parallel.tensor", *value().tp_degree);
    set("pp_degree", "parallel.pipeline", *value().pp_degree);
    set("sequence_parallelism", "parallel.sequence", *value().sequence_parallelism);
    set("use_distributed_optimizer", "parallel.zero", Integer{*value().use_distributed_optimizer ? 1 : 0});
    if (value().pipeline_model_parallel_split_rank)
      set("pipeline_model_parallel_split_rank", "parallel.split_stage", *value().pipeline_model_parallel_split_rank);
    if (const auto of_chunk = value().num_layers_per_virtual_pipeline_stage) {
      const Integer of_stage = result_.spec.model.layers / *value().pp_degree;
      set("num_layers_per_virtual_pipeline_stage", "parallel.virtual_pipeline", of_stage / *of_chunk);
    }
  }

  void lower_update() {
    if (steps_by_batch_)
      nothing("num_micro_batches", "global_batch_size in other_megatron_args gives accumulation.steps");
    else
      set("num_micro_batches", "accumulation.steps", *value().num_micro_batches);
    set("gradient_clipping", "optimizer.clip_norm", *value().gradient_clipping);
    if (resolved_.argument("recompute_granularity") != nullptr)
      nothing("recompute_activations", "recompute_granularity in other_megatron_args gives parallel.recompute");
    else
      set("recompute_activations", "parallel.recompute",
          std::string(*value().recompute_activations ? "selective" : "none"));
  }

  void lower_limit(std::string_view name, std::string_view key, const std::optional<Integer>& count) {
    if (!count) return;
    for (const std::string_view other : {"run.updates", "run.epochs", "run.samples", "run.tokens"})
      if (other != key && !is_none(find_field(other)->get(given_)))
        refuse(std::string(other),
               "excludes " + std::string(name) + " of the plug-in: both say how long the run is; set megatron." +
                   std::string(name) + " in its place",
               format_value(find_field(other)->get(given_)), "one of the two", std::string());
    set(name, key, *count);
  }

  void lower_length() {
    lower_limit("train_iters", "run.updates", value().train_iters);
    lower_samples();
    for (const std::string_view name : {"train_iters", "train_samples"})
      if (!value().train_iters && !value().train_samples) nothing(name, "[run] of the spec says how long the run is");
  }

  /// Only whole updates are trained. The rate decays over all samples, including the remainder.
  void lower_samples() {
    const auto samples = value().train_samples;
    if (!samples) return;
    const UpdatesOfSamples made = updates_of_samples(*samples, std::max<Integer>(full_update(), 1), ramp());
    partial_update_ = made.samples != *samples;
    if (partial_update_)
      lower_limit("train_samples", "run.updates", made.updates);
    else
      lower_limit("train_samples", "run.samples", samples);
  }

  std::optional<RampUp> ramp() const {
    const std::vector<Integer>& given = result_.spec.accumulation.rampup;
    if (given.size() != 3) return std::nullopt;
    const RampUp ramp{given[0], given[1], given[2], full_update()};
    return ramp_problem(ramp).empty() ? std::optional(ramp) : std::nullopt;
  }

  /// Samples of a full-size update.
  Integer full_update() const {
    return result_.spec.parallel.data * result_.spec.accumulation.micro_batch * result_.spec.accumulation.steps;
  }
  /// Converts updates to samples; on overflow the largest number, which is valid for no key.
  Integer samples_of(Integer updates) const {
    Integer samples = 0;
    return __builtin_mul_overflow(updates, full_update(), &samples) ? std::numeric_limits<Integer>::max() : samples;
  }

  void lower_rate() {
    set("lr_decay_style", "schedule.kind", *value().lr_decay_style);
    if (!row("lr_decay_style").keys.empty() && !row("lr_decay_style").keys.front().differs)
      set("lr_decay_style", "schedule.clock", std::string("samples"));
    for (const std::string_view length : {"lr_decay_iters", "lr_decay_samples", "lr_warmup_iters", "lr_warmup_samples"})
      if (row(length).value.origin >= FieldOrigin::field) set(length, "schedule.clock", std::string("samples"));
    const ScheduleKind kind = result_.spec.schedule.kind;
    const bool samples = result_.spec.schedule.clock == RateClock::samples;
    const auto positions = [&](Integer updates) { return samples ? samples_of(updates) : updates; };
    lower_horizon("lr_decay_iters", "train_iters", value().lr_decay_iters, kind, positions);
    lower_horizon("lr_decay_samples", "train_samples", value().lr_decay_samples, kind, [](Integer n) { return n; });
    if (value().lr_warmup_iters) set("lr_warmup_iters", "schedule.warmup", positions(*value().lr_warmup_iters));
    if (value().lr_warmup_samples) {
      if (samples)
        set("lr_warmup_samples", "schedule.warmup", *value().lr_warmup_samples);
      else
        nothing("lr_warmup_samples", "schedule.clock of the spec counts no samples");
    }
    if (value().lr_warmup_fraction) set("lr_warmup_fraction", "schedule.warmup_fraction", *value().lr_warmup_fraction);
    if (kind == ScheduleKind::constant)
      nothing("min_lr", "the rate is constant");
    else
      set("min_lr", "schedule.min_lr", *value().min_lr);
    set("weight_decay_incr_style", "optimizer.weight_decay_style", *value().weight_decay_incr_style);
    if (value().start_weight_decay)
      set("start_weight_decay", "optimizer.start_weight_decay", *value().start_weight_decay);
    if (value().end_weight_decay) set("end_weight_decay", "optimizer.end_weight_decay", *value().end_weight_decay);
    for (const std::string_view end : {"start_weight_decay", "end_weight_decay"})
      if (row(end).keys.empty())
        nothing(end, result_.spec.optimizer.weight_decay_style == WeightDecayStyle::constant
                         ? "the weight decay is constant: optimizer.weight_decay"
                         : "optimizer." + std::string(end) + " of the spec says it");
  }

  template <typename Positions>
  void lower_horizon(std::string_view name, std::string_view length, const std::optional<Integer>& count,
                     ScheduleKind kind, Positions positions) {
    if (!count) return;
    if (kind == ScheduleKind::constant || kind == ScheduleKind::exponential)
      return nothing(name, "a rate of this schedule has no end: " + std::string(to_name(kind)));
    const bool samples = result_.spec.schedule.clock == RateClock::samples;
    if (row(name).value.origin == FieldOrigin::derived && !(partial_update_ && samples))
      return nothing(name, "it is " + std::string(length) + ", and a rate ends with the run in any case");
    set(name, "schedule.total", positions(*count));
  }

  void lower_groups() {
    if (value().no_wd_decay_cond) set("no_wd_decay_cond", "optimizer.no_decay", *value().no_wd_decay_cond);
    if (value().scale_lr_cond) set("scale_lr_cond", "optimizer.scaled_lr", *value().scale_lr_cond);
    const bool scales = !result_.spec.optimizer.scaled_lr.empty();
    if (scales || *value().lr_mult == 1.0) set("lr_mult", "optimizer.lr_mult", *value().lr_mult);
    if (!value().no_wd_decay_cond)
      nothing("no_wd_decay_cond", "biases and the weights of norms do not decay in any case");
    if (!value().scale_lr_cond) {
      nothing("scale_lr_cond", "no parameters have a rate of their own");
      if (!scales) nothing("lr_mult", "scale_lr_cond names no parameters");
    } else if (*value().lr_mult == 1.0) {
      nothing("scale_lr_cond", "lr_mult is 1");
    }
  }

  /// Handles data sets of a library with their own size.
  void lower_own_data() {
    constexpr std::string_view name = "custom_megatron_datasets_provider_function";
    const auto& named = value().custom_megatron_datasets_provider_function;
    const PluginEntry* entry = named ? find_entry(libraries_, name, *named) : nullptr;
    if (entry == nullptr || !entry->sizes) return;
    const auto [training, validation] = *entry->sizes;
    set(name, "data.samples", training + validation);
    set(name, "data.validation_fraction", fraction_keeping(validation, training + validation));
  }

  void lower_data() {
    lower_own_data();
    nothing("is_train_batch_min", "all data of a spec have one micro-batch, accumulation.micro_batch");
    if (*value().megatron_dataset_flag)
      set("megatron_dataset_flag", "data.kind", std::string("indexed"));
    else
      nothing("megatron_dataset_flag", "data.kind of the spec says what the data are");
    if (value().consumed_samples) {
      set("consumed_samples", "data.consumed_samples", *value().consumed_samples);
      if (std::ranges::all_of(*value().consumed_samples, [](Integer count) { return count == 0; }))
        nothing("consumed_samples", "all three are 0, where reading starts in any case");
    }
    const ModelKind model = result_.spec.model.kind;
    const bool has_sequences = is_transformer(model);
    for (const std::string_view name : {"seq_length", "encoder_seq_length", "decoder_seq_length"}) {
      const auto* length = std::get_if<Integer>(&row(name).value.value);
      if (length == nullptr) continue;
      const bool decoder = model == ModelKind::t5 && name == "decoder_seq_length";
      if (!has_sequences)
        nothing(name, "the model has no sequences");
      else if (row(name).value.origin == FieldOrigin::derived)
        nothing(name, "it is " + row(name).value.from);
      else if (is_decoder_only(model) && name == "encoder_seq_length")
        nothing(name, "a GPT has no encoder");
      else if (model == ModelKind::bert && name == "decoder_seq_length")
        nothing(name, "a BERT has no decoder");
      else
        set(name, decoder ? "model.decoder_context" : "model.context", *length);
    }
    check_positions();
  }

  /// A model has as many positions as a sample has tokens.
  void check_positions() {
    const MegatronArgumentValue* positions = resolved_.argument("max_position_embeddings");
    const auto length = value().seq_length;
    if (positions != nullptr && length && std::get<Integer>(positions->value) != *length)
      refuse("megatron." + std::string(arguments_field),
             "max_position_embeddings must be the length of a sample: model.context is both",
             format_value(positions->value), std::to_string(*length));
  }

  bool keeps_data_for_evaluation() const {
    const DataSpec& data = result_.spec.data;
    return data.validation_fraction > 0.0 || data.kind == DataKind::indexed || !data.validation_paths.empty() ||
           has_validation_file(data);
  }

  void lower_reports() {
    if (value().tensorboard_dir) set("tensorboard_dir", "run.tensorboard_dir", *value().tensorboard_dir);
    if (*value().set_all_logging_options) {
      for (const std::string_view key : {"run.parameter_norm", "run.gradient_zeros"})
        if (!is_given_by_argument(key)) set("set_all_logging_options", key, true);
      if (row("set_all_logging_options").keys.empty())
        nothing("set_all_logging_options",
                "log_params_norm and log_num_zeros_in_grad in other_megatron_args say what it would");
    } else {
      nothing("set_all_logging_options", "tensorboard_dir holds everything but params-norm and num-zeros in any case");
    }
    nothing("return_logits", *value().return_logits
                                 ? "a run has no program that takes logits; Accelerator in C++ returns them"
                                 : "a run returns no logits");
    const bool asked = row("eval_interval").value.origin >= FieldOrigin::environment ||
                       row("eval_iters").value.origin >= FieldOrigin::environment;
    if (!asked && !keeps_data_for_evaluation()) {
      for (const std::string_view name : {"eval_iters", "eval_interval"})
        nothing(name, "the data keep nothing for evaluation");
    } else if (*value().eval_iters == 0) {
      nothing("eval_interval", "eval_iters is 0: nothing is evaluated");
      set("eval_iters", "evaluate.every_updates", Integer{0});
    } else {
      set("eval_iters", "evaluate.batches", *value().eval_iters);
      set("eval_interval", "evaluate.every_updates", *value().eval_interval);
    }
  }

  /// A user's own model sets nothing else of the plug-in.
  void lower_own_parts() {
    for (MegatronEffect& effect : result_.fields)
      if (effect.value.field->group != MegatronGroup::hooks)
        effect.nothing = "fields that are left out act only where another field than custom_... is set";
    lower_own_data();
    lower_hooks();
  }

  /// Handles names registered by a plug-in library, which the ranks look up.
  void lower_hooks() {
    for (MegatronEffect& effect : result_.fields) {
      if (effect.value.field->group != MegatronGroup::hooks || is_none(effect.value.value)) continue;
      effect.consumers = "engine/train/run_hooks";
    }
    const auto excludes = [&](std::string_view field, bool wrong, std::string_view key, std::string why,
                              std::string expected) {
      if (wrong && !is_none(row(field).value.value))
        refuse("megatron." + std::string(field), std::move(why), format_value(find_field(key)->get(result_.spec)),
               std::move(expected));
    };
    const ParallelSpec& ranks = result_.spec.parallel;
    for (const std::string_view key : {"parallel.tensor", "parallel.pipeline"})
      excludes("custom_model_provider_function", find_field(key)->get(result_.spec) != SpecValue(Integer{1}), key,
               "needs " + std::string(key) + " = 1 in a run, which could not say what each rank holds", "1");
    excludes("custom_model_provider_function", ranks.virtual_pipeline != 1, "parallel.virtual_pipeline",
             "needs a model in one chunk", "1");
    excludes("custom_megatron_datasets_provider_function", result_.spec.data.kind != DataKind::synthetic, "data.kind",
             "needs data.kind = \"synthetic\", whose data.samples say how many samples it makes", "synthetic");
    if (value().custom_get_batch_function && value().custom_train_step_class)
      refuse("megatron.custom_get_batch_function",
             "excludes custom_train_step_class: a step of your own has its own get_batch()",
             format_value(row("custom_get_batch_function").value.value), "one of the two");
  }

  // ---- messages ------------------------------------------------------------------------------------------------

  /// Its value equals the ordinary key's, but without the field the plug-in's own default would apply.
  static bool holds_off_the_default(const MegatronEffect& effect) {
    const bool given = effect.value.origin == FieldOrigin::field || effect.value.origin == FieldOrigin::environment;
    return given && !effect.keys.empty() && effect.value.field != nullptr &&
           effect.value.value != effect.value.field->fallback;
  }

  void finish(MegatronEffect& effect) {
    std::vector<std::string_view> files;
    bool changed = false;
    for (const LoweredKey& key : effect.keys) {
      changed = changed || key.changed;
      const std::string_view file = megatron_detail::consumer_of(key.key);
      if (std::ranges::find(files, file) == files.end()) files.push_back(file);
    }
    for (const std::string_view file : files)
      effect.consumers += (effect.consumers.empty() ? "" : ", ") + std::string(file);
    if (!effect.nothing.empty() || changed || holds_off_the_default(effect)) return;
    if (effect.keys.empty() && !effect.consumers.empty()) return;
    if (effect.keys.empty())
      effect.nothing = is_none(effect.value.value) ? "it is left out" : "nothing reads it in this spec";
    else if (effect.keys.front().differs)
      give_way(effect);
    else
      effect.nothing =
          std::string(effect.keys.front().key) + " is " + format_value(effect.keys.front().value) + " without it";
  }

  /// The spec's key holds, expressed as the field's value if possible.
  static void give_way(MegatronEffect& effect) {
    const std::string key(effect.keys.front().key);
    effect.nothing = "the spec sets " + key + " itself, and the default gives way";
    const SpecValue same = same_value(effect);
    if (is_none(same)) return;
    effect.value.value = same;
    effect.value.origin = FieldOrigin::derived;
    effect.value.from = key;
  }

  /// A variable may have changed when the spec is read again, so fields with variables keep their resolved values.
  void keep_variables() {
    for (const MegatronEffect& effect : result_.fields) {
      const SpecField& field = effect.value.field->spec_field();
      if (effect.value.field->environment.empty() || !is_none(field.get(given_))) continue;
      SpecValue kept = effect.value.value;
      if (effect.name == "num_micro_batches" && steps_by_batch_) kept = result_.spec.accumulation.steps;
      if (!effect.keys.empty() && effect.keys.front().differs) kept = same_value(effect);
      if (effect.value.origin != FieldOrigin::other_megatron_args) field.set(result_.spec, kept);
    }
  }

  /// Returns the field's value that gives the spec's value of the key; none if there is none.
  static SpecValue same_value(const MegatronEffect& effect) {
    const LoweredKey& key = effect.keys.front();
    if (effect.name == "use_distributed_optimizer") return key.value == SpecValue(Integer{1});
    if (effect.name != "recompute_activations") return key.value;
    if (key.value == SpecValue(std::string("selective"))) return true;
    return {};
  }

  RunSpec given_;
  std::span<const PluginFacts> libraries_;
  ResolvedMegatron resolved_;
  LoweredMegatron result_;
  bool steps_by_batch_ = false;
  bool partial_update_ = false;  ///< train_samples is not a multiple of an update
};

}  // namespace

std::string LoweredKey::field_key() const {
  return "megatron." + by.substr(0, by.find(':'));
}

const LoweredKey* LoweredMegatron::setter_of(std::string_view key) const {
  for (const std::vector<MegatronEffect>* effects : {&arguments, &fields})
    for (const MegatronEffect& effect : *effects)
      for (const LoweredKey& lowered : effect.keys)
        if (lowered.key == key && !lowered.differs) return &lowered;
  return nullptr;
}

LoweredMegatron lower_megatron(const RunSpec& spec, const MegatronEnvironment& environment,
                               std::span<const PluginFacts> libraries) {
  if (!has_megatron(spec)) return {.spec = spec};
  return Lowering(spec, environment, libraries).lower();
}

}  // namespace accrue
