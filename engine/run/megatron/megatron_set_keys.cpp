// SPDX-License-Identifier: Apache-2.0
// Keys that a text or --set gives beside fields of the plug-in: which of the two holds.
#include <algorithm>
#include <utility>

#include "accrue/run/megatron/megatron_lowering.h"
#include "megatron_rules.h"
#include "megatron_values.h"

namespace accrue {

using megatron_detail::is_none;
using megatron_detail::set_to_another;

namespace {

/// A key and the field or argument for it.
struct Pair {
  std::string_view key;
  std::string_view field;
};

bool is_set_to_default(const SpecReading& reading, const SpecField& key) {
  return std::ranges::find(reading.keys, key.key, &KeyPosition::key) != reading.keys.end() &&
         key.get(reading.spec) == key.get(RunSpec());
}

/// Unless the argument is given.
void keep_as_argument(RunSpec& spec, const SpecField& key, std::string_view name) {
  std::vector<Finding> wrong;
  auto& given = spec.megatron.other_megatron_args;
  const auto read = read_megatron_arguments(given.value_or(std::vector<std::string>()), wrong);
  if (std::ranges::any_of(read, [name](const auto& each) { return each.argument->name == name; })) return;
  if (!given) given.emplace();
  given->push_back(std::string(name) + " = " + format_value(key.get(spec)));
}

}  // namespace

RunSpec without_lowered(const RunSpec& spec) {
  if (!has_megatron(spec)) return spec;
  const LoweredMegatron lowered = lower_megatron(spec, empty_environment());
  if (has_errors(lowered.findings)) return spec;
  RunSpec bare = spec;
  for (const std::vector<MegatronEffect>* effects : {&lowered.fields, &lowered.arguments})
    for (const MegatronEffect& effect : *effects)
      for (const LoweredKey& key : effect.keys)
        if (!key.differs) find_field(key.key)->set(bare, find_field(key.key)->get(RunSpec()));
  return bare;
}

void keep_set_keys(SpecReading& reading) {
  if (!has_megatron_fields(reading.spec)) return;
  constexpr Pair pairs[] = {{"accumulation.steps", "megatron.num_micro_batches"},
                            {"optimizer.clip_norm", "megatron.gradient_clipping"},
                            {"schedule.kind", "megatron.lr_decay_style"},
                            {"evaluate.every_updates", "megatron.eval_iters"},
                            {"evaluate.batches", "megatron.eval_iters"}};
  for (const Pair& pair : pairs) {
    // eval_iters = 0 requests no evaluation; a given interval overrides that.
    if (pair.key == "evaluate.every_updates" && reading.spec.megatron.eval_interval) continue;
    const SpecField& key = *find_field(pair.key);
    const SpecField& field = *find_field(pair.field);
    if (is_set_to_default(reading, key) && is_none(field.get(reading.spec)))
      field.set(reading.spec, key.get(reading.spec));
  }
  constexpr Pair arguments[] = {{"optimizer.loss_scale_window", "loss_scale_window"},
                                {"optimizer.loss_scale_hysteresis", "hysteresis"}};
  for (const Pair& pair : arguments)
    if (const SpecField& key = *find_field(pair.key); is_set_to_default(reading, key))
      keep_as_argument(reading.spec, key, pair.field);
}

namespace {

/// Lowering cannot distinguish a key that is set to its default from a missing one.
template <typename IsSet>
void refuse_overridden_defaults(SpecReading& reading, const RunSpec& written, IsSet is_set,
                                const MegatronEnvironment& environment, std::span<const PluginFacts> libraries) {
  if (!has_megatron(reading.spec)) return;
  const LoweredMegatron lowered = lower_megatron(reading.spec, environment, libraries);
  for (const KeyPosition& at : reading.keys) {
    const SpecField* field = find_field(at.key);
    const LoweredKey* setter = lowered.setter_of(at.key);
    if (field == nullptr || setter == nullptr) continue;
    const SpecValue value = field->get(is_set(at) ? reading.spec : written);
    const SpecValue becomes = field->get(lowered.spec);
    if (value != field->get(RunSpec()) || value == becomes) continue;
    reading.findings.push_back({.key = at.key,
                                .message = set_to_another(setter->by, setter->field_key()),
                                .found = format_value(value),
                                .expected = format_value(becomes)});
  }
}

}  // namespace

void apply_sets(SpecReading& reading, std::span<const std::string> sets, const MegatronEnvironment& environment,
                std::span<const PluginFacts> libraries) {
  SpecReading of_sets;
  for (const std::string& assignment : sets) set_field(of_sets, assignment);
  const auto is_set = [&of_sets](const KeyPosition& at) {
    return std::ranges::find(of_sets.keys, at.key, &KeyPosition::key) != of_sets.keys.end();
  };
  std::erase_if(reading.keys, is_set);
  const RunSpec written = reading.spec;
  const bool had_fields = has_megatron(reading.spec);
  keep_set_keys(reading);
  reading.spec = without_lowered(reading.spec);
  std::vector<KeyPosition> of_text;
  if (had_fields) of_text = std::exchange(reading.keys, {});
  for (const std::string& assignment : sets) set_field(reading, assignment);
  keep_set_keys(reading);
  reading.keys.insert(reading.keys.begin(), of_text.begin(), of_text.end());
  refuse_overridden_defaults(reading, written, is_set, environment, libraries);
}

}  // namespace accrue
