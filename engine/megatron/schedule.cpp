// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's OptimizerParamScheduler counts samples: a length in iterations is multiplied by the global batch B.
// Rates decay over lr_decay_*, and the weight decay changes over the whole run, so the two may end apart.
// Source: get_optimizer_param_scheduler() of Megatron-LM's training.py.
#include "megatron/schedule.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "accrue/run/base/number_text.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec_io.h"
#include "megatron/own_arguments.h"

namespace accrue::megatron {
namespace {

/// Lengths are in samples.
template <typename Of, typename Visit>
void visit_values(Of& schedule, Visit visit) {
  visit("lr", schedule.curve.lr);
  visit("min_lr", schedule.curve.min_lr);
  visit("lr_warmup_init", schedule.curve.init_lr);
  visit("lr_warmup_samples", schedule.curve.warmup);
  visit("lr_decay_style", schedule.curve.kind);
  visit("lr_decay_samples", schedule.curve.total);
  visit("lr_wsd_decay_style", schedule.curve.decay_tail);
  visit("lr_wsd_decay_part", schedule.curve.decay_fraction);
  visit("decoupled_lr", schedule.decoupled.lr);
  visit("decoupled_min_lr", schedule.decoupled.min_lr);
  visit("weight_decay_incr_style", schedule.decay.style);
  visit("start_weight_decay", schedule.decay.start);
  visit("end_weight_decay", schedule.decay.end);
  visit("train_samples", schedule.decay.samples);
}

template <typename Value>
std::string text_of(Value value) {
  if constexpr (std::is_enum_v<Value>)
    return std::string(to_name(value));
  else
    return format_value(value);
}

template <typename Value>
void read(const std::string& name, const std::string& text, Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    if (const auto found = from_name<Value>(text)) {
      value = *found;
      return;
    }
  } else {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed == std::errc{} && end == text.data() + text.size() && value >= 0 &&
        std::isfinite(static_cast<double>(value)))
      return;
  }
  throw std::invalid_argument(name + " cannot be \"" + text + "\"");
}

Schedule read_schedule(Schedule schedule, const std::map<std::string, std::string>& saved) {
  visit_values(schedule, [&](const std::string& name, auto& value) {
    const auto found = saved.find("schedule." + name);
    if (found == saved.end()) throw std::invalid_argument("\"schedule." + name + "\" is missing");
    read(name, found->second, value);
  });
  const LrCurve& curve = schedule.curve;
  if (curve.total < 1 || curve.warmup >= static_cast<double>(curve.total) || curve.min_lr > curve.lr)
    throw std::invalid_argument("the saved rates and lengths of the schedule contradict each other");
  // The embeddings' curve has two rates of its own, and all else from the other curve: only these were saved.
  const LrCurve decoupled = schedule.decoupled;
  schedule.decoupled = curve;
  schedule.decoupled.lr = decoupled.lr;
  schedule.decoupled.min_lr = decoupled.min_lr;
  return schedule;
}

/// A spec's name of the style, up to the last that Megatron-LM has.
template <typename E>
E style_named(const std::string& field, const std::string& word, E last) {
  const auto style = from_name<E>(word);
  if (style && *style <= last) return *style;
  throw std::invalid_argument(field + " \"" + word + "\" is none of " +
                              joined(choice_names<E>().first(static_cast<std::size_t>(last) + 1)));
}

}  // namespace

Schedule make_schedule(const ResolvedMegatron& resolved, const MegatronLMDummyScheduler& scheduler,
                       std::int64_t global_batch, double lr, double weight_decay) {
  const MegatronSpec& p = resolved.effective;
  const auto samples = [&](std::int64_t updates) { return updates * global_batch; };
  const std::optional<std::int64_t> updates = p.train_iters ? p.train_iters : scheduler.total_num_steps;
  const std::optional<std::int64_t> run = p.train_samples ? p.train_samples
                                          : updates       ? std::optional(samples(*updates))
                                                          : std::nullopt;
  if (!run)
    throw std::invalid_argument(
        "the run's length is not known: set train_iters, train_samples or MegatronLMDummyScheduler's "
        "total_num_steps");
  ScheduleSpec spec{.kind = style_named("lr_decay_style", *p.lr_decay_style, ScheduleKind::wsd),
                    .clock = RateClock::samples};
  spec.min_lr = *p.min_lr;
  // The decay ends after lr_decay_samples or lr_decay_iters; by default with the run.
  spec.total = p.lr_decay_samples ? *p.lr_decay_samples : p.lr_decay_iters ? samples(*p.lr_decay_iters) : *run;
  OptimizerSpec rates{.lr = lr, .weight_decay = weight_decay};
  set_rates(resolved, global_batch, rates, spec);
  Schedule schedule;
  LrCurve& curve = schedule.curve;
  curve = make_curve(rates, spec, *spec.total);
  // A fraction is of the decay, not of the run, and is not rounded to samples.
  if (p.lr_warmup_fraction)
    curve.warmup = *p.lr_warmup_fraction * static_cast<double>(*spec.total);
  else if (p.lr_warmup_samples && *p.lr_warmup_samples > 0)
    curve.warmup = static_cast<double>(*p.lr_warmup_samples);
  else
    curve.warmup = static_cast<double>(samples(p.lr_warmup_iters.value_or(scheduler.warmup_num_steps)));
  if (spec.init_lr > 0.0 && curve.warmup == 0.0)
    throw std::invalid_argument(
        "other_megatron_args: lr_warmup_init needs a warm-up, whose first rate it is: set lr_warmup_iters, "
        "lr_warmup_samples or lr_warmup_fraction");
  if (*p.min_lr > lr)
    throw std::invalid_argument("min_lr " + std::to_string(*p.min_lr) + " is above the optimizer's rate " +
                                std::to_string(lr));
  if (curve.warmup >= static_cast<double>(curve.total))
    throw std::invalid_argument("the warm-up (" + std::to_string(static_cast<std::int64_t>(curve.warmup)) +
                                " samples) does not end before the decay (" + std::to_string(curve.total) +
                                " samples)");
  // After the warm-up is set, because it is part of both.
  schedule.decoupled = decoupled_curve(curve, rates);
  if (schedule.decoupled.min_lr > schedule.decoupled.lr)
    throw std::invalid_argument("other_megatron_args: decoupled_lr is below the lowest rate");
  schedule.decay = {
      .style = style_named("weight_decay_incr_style", *p.weight_decay_incr_style, WeightDecayStyle::cosine),
      .start = p.start_weight_decay.value_or(weight_decay),
      .end = p.end_weight_decay.value_or(weight_decay),
      .samples = *run};
  return schedule;
}

std::map<std::string, std::string> texts_of(const Schedule& schedule) {
  std::map<std::string, std::string> texts;
  visit_values(schedule, [&](const std::string& name, auto value) { texts["schedule." + name] = text_of(value); });
  return texts;
}

Schedule schedule_after_load(const Schedule& own, const std::map<std::string, std::string>& saved,
                             const ResolvedMegatron& resolved) {
  Schedule theirs = read_schedule(own, saved);
  if (resolved.argument_or("use_checkpoint_opt_param_scheduler", false)) return theirs;
  if (resolved.argument_or("override_opt_param_scheduler", false)) return own;
  const auto before = texts_of(theirs);
  visit_values(own, [&](const std::string& name, auto value) {
    if (const std::string& then = before.at("schedule." + name); text_of(value) != then)
      throw std::invalid_argument(name + " is " + text_of(value) + " here; the state was saved with " + then +
                                  ": set override_opt_param_scheduler to go on with what is set here, or "
                                  "use_checkpoint_opt_param_scheduler to go on with what was saved");
  });
  return own;
}

}  // namespace accrue::megatron
