// SPDX-License-Identifier: Apache-2.0
// Several schedules can follow one window, each with its own total. The guard on the total compares the inner
// scheduler's own count, whatever it was when it was prepared.
#include "accrue/accumulation/accelerate/accelerated_scheduler.h"

#include <algorithm>
#include <utility>

#include "accelerator_impl.h"

namespace accrue::accelerate {

AcceleratedScheduler::AcceleratedScheduler(const std::shared_ptr<BaseScheduler>& wrapped, AcceleratorImpl& accelerator,
                                           std::vector<const AcceleratedOptimizer*> optimizers)
    : SchedulerWrapper(wrapped), accelerator_(accelerator), optimizers_(std::move(optimizers)) {
  schedule_.total = inner().total_steps();
}

void AcceleratedScheduler::step(std::optional<std::int64_t> epoch) {
  auto optimizers = optimizers_;
  if (optimizers.empty())
    for (const auto& each : accelerator_.optimizers) optimizers.push_back(each.get());
  const auto skipped = [](const auto* each) { return each->step_was_skipped(); };
  const auto waits = [](const auto* each) { return each->outcome() == StepOutcome::accumulated; };
  const AccumulationWindow& window = accelerator_.state.window();
  const bool held = window.boundary_due() && std::any_of(optimizers.begin(), optimizers.end(), skipped);
  std::int64_t elsewhere = 0;  // inner steps taken elsewhere
  if (schedule_.total)
    if (const StateDict state = inner().state_dict(); state.contains("position"))
      elsewhere = integer_of(state, "position") - schedule_.position;
  // The guard compares the inner scheduler's whole count with its total, as the original compares _step_count.
  schedule_.guard_count += elsewhere;
  const std::int64_t ticks = window.call_schedule(schedule_, held);
  schedule_.guard_count -= elsewhere;
  if (ticks > 0 && !std::exchange(warned_, true) && !optimizers.empty() &&
      std::all_of(optimizers.begin(), optimizers.end(), waits))
    warn_of_schedule_before_step();
  for (std::int64_t tick = 0; tick < ticks; ++tick) inner().step(epoch);
}

StateDict AcceleratedScheduler::state_dict() const {
  StateDict state{{"position", state_number(schedule_.position)}, {"guard_count", state_number(schedule_.guard_count)}};
  put_under(state, "inner", inner().state_dict());
  return state;
}

void AcceleratedScheduler::load_state_dict(const StateDict& state) {
  const FollowingSchedule loaded{count_of(state, "position"), count_of(state, "guard_count"), schedule_.total};
  inner().load_state_dict(take_under(state, "inner"));
  schedule_ = loaded;
}

}  // namespace accrue::accelerate
