// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/run_tally.h"

#include <utility>

#include "accrue/run/events/lamp.h"
#include "accrue/run/events/run_state.h"

namespace accrue {

RunTally::RunTally(double paused_seconds, std::optional<ExactnessCheck> worst_check, double loss)
    : paused_seconds_(paused_seconds), loss_(loss), worst_(std::move(worst_check)) {}

void RunTally::take(const RunEvent& event) {
  if (const auto* changed = std::get_if<StateChanged>(&event.body)) {
    if (run_state_from(changed->state) == RunState::paused) {
      if (!paused_since_ns_) paused_since_ns_ = event.time_ns;
    } else if (const auto since = std::exchange(paused_since_ns_, std::nullopt)) {
      since_update_ += static_cast<double>(event.time_ns - *since) * 1e-9;
    }
  } else if (const auto* update = std::get_if<Update>(&event.body); update != nullptr && event.rank == 0) {
    paused_seconds_ += std::exchange(since_update_, 0.0);
    if (update->outcome != StepOutcome::skipped_empty) loss_ = update->loss;
  } else if (const auto* check = std::get_if<ExactnessCheck>(&event.body)) {
    worst_ = worst_ ? *worst_of({*worst_, *check}) : *check;
  }
}

}  // namespace accrue
