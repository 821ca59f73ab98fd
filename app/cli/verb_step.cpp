// SPDX-License-Identifier: Apache-2.0
// step: continues a paused run to its next stop, and prints its ranks' local values there. The numbers are those of the
// studio's inspector, from the same events.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/events/host_command.h"
#include "accrue/run/events/run_state.h"
#include "accrue/run/record/run_store.h"
#include "print.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto poll_interval = 20ms;
constexpr int looks_for_a_supervisor = 50;  ///< a missing one ends no step

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format(" {:.6g}", value);
  return text;
}

std::string held_text(std::int64_t rank, const Held& held) {
  std::string text = fmt::format("rank {}: ", rank);
  if (!std::isnan(held.loss)) text += fmt::format("loss {:.6g}, ", held.loss);
  if (!std::isnan(held.weight)) text += fmt::format("times {:.6g}, ", held.weight);
  // The micro-step's own gradients are in the sum from its backward on, and none after they were cleared.
  const bool before_backward = held.phase == StepPhase::forward || held.phase == StepPhase::scale;
  const std::int64_t in_sum = held.phase == StepPhase::zero ? 0 : held.position - (before_backward ? 1 : 0);
  text += fmt::format("{} of {} micro-steps in the gradients, ", in_sum, held.size);
  text += std::isnan(held.gradient_norm) ? "which are being reduced" : fmt::format("norm {:.6g}", held.gradient_norm);
  if (!std::isnan(held.factor)) text += fmt::format(", times {:.6g}", held.factor);
  if (!std::isnan(held.clip)) text += fmt::format(", clipped by {:.6g}", held.clip);
  text += fmt::format(", learning rate {:.6g}, then {:.6g}\n", held.lr, held.next_lr);
  if (held.parameter.empty()) return text;
  const auto shown = static_cast<std::int64_t>(held.weights.size());
  const std::string which = shown < held.elements
                                ? fmt::format("{}, the first {} of {}", held.parameter, shown, held.elements)
                                : held.parameter;
  text += fmt::format("  {}:{}\n", which, numbers(held.weights));
  return held.gradient.empty() ? text : text + fmt::format("  its gradient:{}\n", numbers(held.gradient));
}

/// Returns true once the run is paused or has ended.
bool show(const RunEvent& event) {
  if (const auto* held = std::get_if<Held>(&event.body)) put(held_text(event.rank, *held));
  const auto* changed = std::get_if<StateChanged>(&event.body);
  if (changed == nullptr) return false;
  const auto state = run_state_from(changed->state);
  if (!state || (*state != RunState::paused && !is_over(*state))) return false;
  put("%s\n", changed->detail.c_str());
  return true;
}

}  // namespace

int step_run(const StepOptions& options) {
  const auto folder = run_folder_at(options.dir);
  if (!folder) return report(folder.error());
  auto events = EventFile::open(*folder / "events.jsonl");
  if (!events) return report(events.error());
  while (!events->at_end()) events->poll();
  const HostVerb verb = options.phase    ? HostVerb::step_phase
                        : options.update ? HostVerb::step_update
                                         : HostVerb::step_micro_step;
  if (const auto state = ask_run(options.dir, {verb}); !state) return report(state.error());
  for (int looks = 1;; ++looks) {
    for (const RunEvent& event : events->poll())
      if (show(event)) return status_done;
    std::this_thread::sleep_for(poll_interval);
    if (looks % looks_for_a_supervisor != 0 || !events->at_end()) continue;
    if (const auto state = ask_run(options.dir, {HostVerb::status}); !state) return report(state.error());
  }
}

}  // namespace accrue::cli
