// SPDX-License-Identifier: Apache-2.0
#include "megatron/schedule_state.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "accrue/run/choice_names.h"
#include "accrue/run/spec_io.h"

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
  const LrCurve decoupled = schedule.decoupled;
  schedule.decoupled = curve;
  schedule.decoupled.lr = decoupled.lr;
  schedule.decoupled.min_lr = decoupled.min_lr;
  return schedule;
}

}  // namespace

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
