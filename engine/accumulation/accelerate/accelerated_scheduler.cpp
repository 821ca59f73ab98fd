// SPDX-License-Identifier: Apache-2.0
// Several schedules can follow one training, each with its own total, so each has a window of its own for its ticks.
// What is a boundary it hears from the shared one, what was skipped from its optimizers, just before each call. What
// the guard on the total compares is the inner scheduler's own count, wherever that was when it was prepared.
#include "accrue/accumulation/accelerate/accelerated_scheduler.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace accrue::accelerate {
namespace {

WindowShape clock_shape(const GradientState& state, const BaseScheduler& inner) {
  WindowShape shape = state.window().shape();
  shape.schedule_total = inner.total_steps();
  return shape;
}

/// Inner steps that `inner` has taken in its life; none where its state does not say.
std::optional<std::int64_t> count_of(const BaseScheduler& inner) {
  const StateDict state = inner.state_dict();
  if (!state.contains("position")) return std::nullopt;
  return integer_of(state, "position");
}

}  // namespace

AcceleratedScheduler::AcceleratedScheduler(std::shared_ptr<BaseScheduler> inner, GradientState& state,
                                           Optimizers optimizers)
    : inner_(std::move(inner)),
      state_(state),
      optimizers_(std::move(optimizers)),
      clock_(clock_shape(state, *inner_)) {}

void AcceleratedScheduler::step(std::optional<std::int64_t> epoch) {
  state_.script().note([=, this] { step(epoch); });
  const bool boundary = state_.sync_gradients();
  // The clock's own guard counts from 0; for this call it stands where the inner scheduler does.
  const auto count = total_steps() ? count_of(*inner_) : std::nullopt;
  const std::int64_t ahead = count ? *count - clock_.schedule_position() : 0;
  const auto optimizers = optimizers_();
  const bool skipped = boundary && std::any_of(optimizers.begin(), optimizers.end(),
                                               [](const auto* each) { return each->step_was_skipped(); });
  const StepOutcome outcome = skipped ? StepOutcome::skipped_overflow : StepOutcome::updated;
  const std::int64_t ticks = clock_.call_schedule(boundary, outcome, ahead);
  const auto waits = [](const auto* each) { return each->outcome() == StepOutcome::accumulated; };
  if (ticks > 0 && !std::exchange(warned_, true) && !optimizers.empty() &&
      std::all_of(optimizers.begin(), optimizers.end(), waits))
    warn_of_schedule_before_step();
  for (std::int64_t tick = 0; tick < ticks; ++tick) inner_->step(epoch);
}

void AcceleratedScheduler::print_lr(std::ostream& out) const {
  for (const double rate : get_last_lr()) out << "learning rate " << rate << '\n';
}

StateDict AcceleratedScheduler::state_dict() const {
  StateDict state;
  put_under(state, "inner", inner_->state_dict());
  put_under(state, "clock", window_state(clock_.position()));
  return state;
}

void AcceleratedScheduler::load_state_dict(const StateDict& state) {
  const WindowPosition clock = window_position(take_under(state, "clock"));
  inner_->load_state_dict(take_under(state, "inner"));
  clock_.restore(clock);
}

}  // namespace accrue::accelerate
