// SPDX-License-Identifier: GPL-3.0-or-later
#include "step_queue.h"

#include <variant>

#include "accrue/run/events/run_state.h"

namespace accrue::ui {

namespace {

/// More than manual presses during one micro-step, and soon finished after a key was held down.
constexpr std::size_t mostWaiting = 16;

}  // namespace

void StepQueue::add(Step step) {
  if (waiting_.size() < mostWaiting) waiting_.push_back(step);
}

void StepQueue::clear() {
  stage_ = Stage::none;
  waiting_.clear();
}

/// Any other event of the run, such as a warning or a command from another process, ends the steps.
std::optional<StepQueue::Step> StepQueue::take(const std::vector<RunEvent>& events) {
  if (!isUnderWay()) return std::nullopt;
  for (const RunEvent& event : events) {
    if (std::holds_alternative<Warning>(event.body)) clear();
    if (const auto* changed = std::get_if<StateChanged>(&event.body))
      if (const auto state = run_state_from(changed->state)) takeState(*state);
  }
  if (isUnderWay() || waiting_.empty()) return std::nullopt;
  const Step next = waiting_.front();
  waiting_.pop_front();
  begin();
  return next;
}

void StepQueue::takeState(RunState state) {
  if (state == RunState::paused) {
    if (stage_ != Stage::sent) stage_ = Stage::none;
  } else if (stage_ == Stage::sent && state == RunState::running) {
    stage_ = Stage::moving;
  } else if (stage_ != Stage::starting || is_over(state)) {
    clear();
  }
}

}  // namespace accrue::ui
