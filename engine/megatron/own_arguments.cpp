// SPDX-License-Identifier: Apache-2.0
#include "megatron/own_arguments.h"

#include <stdexcept>
#include <string>
#include <string_view>

#include "accrue/run/fields/spec_io.h"

namespace accrue::megatron {
namespace {

[[noreturn]] void refuse_argument(std::string_view name, const std::string& message) {
  throw std::invalid_argument("other_megatron_args: " + std::string(name) + " " + message);
}

/// Sets the argument's key of the spec. A number and a choice must be in the key's range, as in a run.
void set_key(RunSpec& spec, const MegatronArgumentValue& given, const std::string& value) {
  std::vector<Finding> findings;
  set_field(spec, std::string(given.argument->key) + "=" + value, findings);
  for (const Finding& wrong : findings)
    refuse_argument(given.argument->name, "gives " + wrong.key + ", which " + wrong.message + " (found " + wrong.found +
                                              ", expected " + wrong.expected + ")");
}

void check_range(const MegatronArgumentValue& given) {
  const bool number = std::holds_alternative<std::int64_t>(given.value) || std::holds_alternative<double>(given.value);
  const bool in_updates = given.argument->key == "schedule.decay_fraction";  // set_rates() knows of how many
  RunSpec spec;
  if (number && !given.argument->key.empty() && !in_updates) set_key(spec, given, format_value(given.value));
}

/// Says that an Accelerator ignores the overlap options of a whole run.
void check_overlap(const ResolvedMegatron& resolved) {
  constexpr std::pair<std::string_view, const char*> overlaps[] = {
      {"overlap_grad_reduce", "gradients are reduced after the last micro-batch of a train step"},
      {"overlap_param_gather", "parameters are gathered at the end of a train step"}};
  for (const auto& [name, why] : overlaps)
    if (resolved.argument_or(name, false))
      refuse_argument(name,
                      std::string("must be false with an Accelerator: ") + why + "; a run of a spec overlaps both");
}

/// The tail of a WSD schedule.
void set_tail(const ResolvedMegatron& resolved, std::int64_t global_batch, ScheduleSpec& schedule) {
  if (const MegatronArgumentValue* style = resolved.argument("lr_wsd_decay_style")) {
    const std::string word = std::get<std::string>(style->value);
    const std::string own = word == "minus_sqrt" ? "minus-square-root" : word;
    RunSpec spec;
    set_key(spec, *style, own);
    schedule.decay_tail = spec.schedule.decay_tail;
  }
  const MegatronArgumentValue* updates = resolved.argument("lr_wsd_decay_iters");
  const MegatronArgumentValue* samples = resolved.argument("lr_wsd_decay_samples");
  if (updates != nullptr && samples != nullptr)
    refuse_argument("lr_wsd_decay_iters", "and lr_wsd_decay_samples exclude each other");
  if (updates == nullptr && samples == nullptr) return;
  const std::int64_t most = updates != nullptr ? *schedule.total / global_batch : *schedule.total;
  const std::int64_t length = std::get<std::int64_t>((updates != nullptr ? updates : samples)->value);
  if (length < 1 || length > most)
    refuse_argument(
        updates != nullptr ? "lr_wsd_decay_iters" : "lr_wsd_decay_samples",
        "must be a part of the decay, from 1 to " + std::to_string(most) + " (found " + std::to_string(length) + ")");
  const std::int64_t tail = updates != nullptr ? length * global_batch : length;
  schedule.decay_fraction = static_cast<double>(tail) / static_cast<double>(*schedule.total);
}

void check_tail(const ResolvedMegatron& resolved, const ScheduleSpec& schedule) {
  if (schedule.kind == ScheduleKind::wsd) return;
  for (const char* name : {"lr_wsd_decay_style", "lr_wsd_decay_iters", "lr_wsd_decay_samples"})
    if (resolved.argument(name) != nullptr)
      refuse_argument(name, "needs lr_decay_style \"WSD\": no other schedule has a tail of its own");
}

}  // namespace

void check_arguments(const ResolvedMegatron& resolved) {
  for (const MegatronArgumentValue& each : resolved.arguments) {
    const MegatronArgument& argument = *each.argument;
    // One that only a whole run has a use for would change nothing here.
    if (argument.field.empty() && argument.only.empty() && !argument.in_program)
      refuse_argument(argument.name, "is \"" + std::string(argument.key) +
                                         "\" of a spec; in a program of your own it belongs to the model, the "
                                         "optimizer or the loader that you prepare");
    check_range(each);
  }
  check_overlap(resolved);
}

void set_recompute(const ResolvedMegatron& resolved, ParallelSpec& parallel) {
  if (*resolved.effective.recompute_activations) parallel.recompute = RecomputeKind::selective;
  RunSpec spec;
  spec.parallel = parallel;
  for (const char* name :
       {"recompute_granularity", "recompute_method", "recompute_num_layers", "distribute_saved_activations"})
    if (const MegatronArgumentValue* given = resolved.argument(name)) set_key(spec, *given, format_value(given->value));
  parallel = spec.parallel;
}

bool set_dropout(const ResolvedMegatron& resolved, ModelSpec& model) {
  const MegatronArgumentValue* hidden = resolved.argument("hidden_dropout");
  const MegatronArgumentValue* attention = resolved.argument("attention_dropout");
  if (hidden == nullptr && attention == nullptr) return false;
  if (hidden != nullptr && attention != nullptr && hidden->value != attention->value)
    refuse_argument("hidden_dropout", "and attention_dropout are one here: a model has one dropout (found " +
                                          format_value(hidden->value) + " and " + format_value(attention->value) +
                                          ", expected equal values)");
  model.dropout = std::get<double>((hidden != nullptr ? hidden : attention)->value);
  return true;
}

void set_rates(const ResolvedMegatron& resolved, std::int64_t global_batch, OptimizerSpec& optimizer,
               ScheduleSpec& schedule) {
  const auto number = [&](std::string_view name) -> std::optional<double> {
    const MegatronArgumentValue* given = resolved.argument(name);
    return given == nullptr ? std::nullopt : std::optional(std::get<double>(given->value));
  };
  schedule.init_lr = number("lr_warmup_init").value_or(schedule.init_lr);
  if (schedule.init_lr > optimizer.lr) refuse_argument("lr_warmup_init", "is above the optimizer's rate");
  optimizer.decoupled_lr = number("decoupled_lr");
  optimizer.decoupled_min_lr = number("decoupled_min_lr");
  if (optimizer.decoupled_min_lr && !optimizer.decoupled_lr)
    refuse_argument("decoupled_min_lr", "needs decoupled_lr, whose lowest value it is");
  set_tail(resolved, global_batch, schedule);
  check_tail(resolved, schedule);
}

}  // namespace accrue::megatron
