// SPDX-License-Identifier: Apache-2.0
// An argument, a plugin and the environment can give N. Like the original, this refuses the first two together, and
// lets the environment override the argument but not the plugin; its error says which were given.
#include "accrue/accumulation/accelerate/gradient_accumulation_plugin.h"

#include <charconv>
#include <cstdlib>
#include <ostream>
#include <stdexcept>

namespace accrue::accelerate {
namespace {

constexpr const char* steps_variable = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS";

std::optional<std::string> from_process(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size()) return number;
  throw std::invalid_argument(std::string(steps_variable) + " holds \"" + text + "\"; give a whole number from 1");
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GradientAccumulationPlugin& plugin) {
  const auto word = [](bool yes) { return yes ? "True" : "False"; };
  return out << "GradientAccumulationPlugin(num_steps="
             << (plugin.num_steps ? std::to_string(*plugin.num_steps) : "None")
             << ", adjust_scheduler=" << word(plugin.adjust_scheduler)
             << ", sync_with_dataloader=" << word(plugin.sync_with_dataloader)
             << ", sync_each_batch=" << word(plugin.sync_each_batch) << ')';
}

std::int64_t checked_steps(std::int64_t steps) {
  if (steps >= 1) return steps;
  throw std::invalid_argument("gradient accumulation: num_steps is " + std::to_string(steps) +
                              ", and an update needs at least one micro-step; give 1 or more");
}

GradientAccumulationPlugin resolve_plugin(std::int64_t steps, const std::optional<GradientAccumulationPlugin>& plugin,
                                          const Environment& environment) {
  if (plugin) {
    if (steps != 1)
      throw std::invalid_argument("gradient accumulation: gradient_accumulation_steps = " + std::to_string(steps) +
                                  " and a GradientAccumulationPlugin are both given; set num_steps in the plugin and "
                                  "leave gradient_accumulation_steps out");
    checked_steps(plugin->num_steps.value_or(1));
    return *plugin;
  }
  const auto override_steps = environment ? environment(steps_variable) : from_process(steps_variable);
  GradientAccumulationPlugin resolved;
  resolved.num_steps = checked_steps(override_steps ? number_in(*override_steps) : steps);
  return resolved;
}

}  // namespace accrue::accelerate
