// SPDX-License-Identifier: Apache-2.0
#include "hold_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/window/accumulation_window.h"
#include "accrue/run/window/inside_windows.h"

namespace accrue {

const char* stretch_of(const RunSpec& spec) {
  return stops_inside_windows(spec) ? "micro-step" : "window";
}

std::int64_t next_boundary(const RunPlan& plan, std::int64_t micro_step) {
  AccumulationWindow window(plan.window);
  window.seek(micro_step);
  auto last = micro_step;
  while (const auto next = window.next()) {
    last = next->micro_step;
    if (next->update) break;
  }
  return std::max(last, micro_step + 1);
}

std::int64_t next_stop(const RunPlan& plan, std::int64_t micro_step) {
  if (micro_step == 0 || stops_inside_windows(plan.spec)) return micro_step;
  return next_boundary(plan, micro_step - 1);
}

std::string paused_text(const RunPlan& plan, std::int64_t micro_step, StepPhase phase) {
  AccumulationWindow window(plan.window);
  window.seek(micro_step - 1);
  const auto at = window.next();
  if (!at) return fmt::format("Paused after micro-step {}", micro_step);
  const std::string after = phase == StepPhase::none ? "at" : fmt::format("after {} of", to_string(phase));
  return fmt::format("Paused {} micro {} of {}, update {}", after, at->position + 1, at->window_size, at->window + 1);
}

}  // namespace accrue
