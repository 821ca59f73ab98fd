// SPDX-License-Identifier: Apache-2.0
// Several schedules can follow one window, each with its own total. What the guard on the total compares is the inner
// scheduler's own count, wherever that was when it was prepared.
#include "accrue/accumulation/accelerate/accelerated_scheduler.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace accrue::accelerate {

AcceleratedScheduler::AcceleratedScheduler(std::shared_ptr<BaseScheduler> inner, SharedWindow window,
                                           Optimizers optimizers)
    : inner_(std::move(inner)), window_(std::move(window)), optimizers_(std::move(optimizers)) {
  schedule_.total = inner_->total_steps();
}

void AcceleratedScheduler::step(std::optional<std::int64_t> epoch) {
  const auto optimizers = optimizers_();
  const auto skipped = [](const auto* each) { return each->step_was_skipped(); };
  const auto waits = [](const auto* each) { return each->outcome() == StepOutcome::accumulated; };
  const bool held = window_->boundary_due() && std::any_of(optimizers.begin(), optimizers.end(), skipped);
  std::int64_t elsewhere = 0;  // inner steps that were not taken here
  if (schedule_.total)
    if (const StateDict inner = inner_->state_dict(); inner.contains("position"))
      elsewhere = integer_of(inner, "position") - schedule_.position;
  schedule_.guard_count += elsewhere;
  const std::int64_t ticks = window_->call_schedule(schedule_, held);
  schedule_.guard_count -= elsewhere;
  if (ticks > 0 && !std::exchange(warned_, true) && !optimizers.empty() &&
      std::all_of(optimizers.begin(), optimizers.end(), waits))
    warn_of_schedule_before_step();
  for (std::int64_t tick = 0; tick < ticks; ++tick) inner_->step(epoch);
}

void AcceleratedScheduler::print_lr(std::ostream& out) const {
  for (const double rate : get_last_lr()) out << "learning rate " << rate << '\n';
}

StateDict AcceleratedScheduler::state_dict() const {
  StateDict state{{"position", state_number(schedule_.position)}, {"guard_count", state_number(schedule_.guard_count)}};
  put_under(state, "inner", inner_->state_dict());
  return state;
}

void AcceleratedScheduler::load_state_dict(const StateDict& state) {
  const FollowingSchedule loaded{count_of(state, "position"), count_of(state, "guard_count"), schedule_.total};
  inner_->load_state_dict(take_under(state, "inner"));
  schedule_ = loaded;
}

}  // namespace accrue::accelerate
