// SPDX-License-Identifier: Apache-2.0
// WindowTransition moves a position by one micro-step and describes it. next() adds the size of the window, which needs
// a look ahead, by walking on from a copy.
#include "accrue/run/window/accumulation_window.h"

#include <algorithm>
#include <stdexcept>

#include "accrue/run/base/name_of.h"
#include "window_transition.h"
#include "window_walk.h"

namespace accrue {
namespace {

/// N, or in the last iterations before max_iters that fill no window, their number (K5 run_remainder). `after`:
/// position after the micro-step. Source: MMEngine's OptimWrapper.scale_loss(), which compares the count before it,
/// with count < max_counts - remainder.
std::int64_t run_remainder_divisor(const WindowShape& shape, WindowPosition after, std::int64_t steps) {
  if (!shape.max_iters || steps <= 1) return steps;
  const std::int64_t remainder = *shape.max_iters % steps;
  return WindowTransition(shape, after).iteration() > *shape.max_iters - remainder ? remainder : steps;
}

Division division_of(const WindowShape& shape, const WindowPosition& after, const MicroPlan& micro) {
  const NormalizeWhen when = divides_when(shape.knobs, shape.world);
  switch (shape.knobs.normalizer) {
    case Normalizer::none:
      return {Division::By::none, 1.0, when};
    case Normalizer::steps:
      return {Division::By::number, static_cast<double>(micro.steps), when};
    case Normalizer::true_size:
      return {Division::By::number, static_cast<double>(micro.window_size), when};
    case Normalizer::run_remainder:
      return {Division::By::number, static_cast<double>(run_remainder_divisor(shape, after, micro.steps)), when};
    case Normalizer::samples:
      return {Division::By::samples, 1.0, when};
    case Normalizer::tokens:
      return {Division::By::items, 1.0, when};
  }
  return {};
}

/// Completes the shape for a plan: lengths of at least one, and mmengine's max_counts, which is the whole run.
WindowShape resolved(WindowShape shape) {
  shape.steps = std::max<std::int64_t>(shape.steps, 1);
  for (auto* changes : {&shape.length_schedule, &shape.steps_set})
    for (LengthChange& change : *changes) change.steps = std::max<std::int64_t>(change.steps, 1);
  const bool limited =
      shape.max_updates || shape.max_micro_steps || (shape.max_epochs && shape.batches_per_epoch != unknown_length);
  if (shape.knobs.normalizer == Normalizer::run_remainder && !shape.max_iters && limited) {
    WindowWalk walk(shape);
    walk.to_end();
    shape.max_iters = walk.at().micro_step();
  }
  return shape;
}

}  // namespace

std::optional<double> Division::number() const {
  return counts() ? std::nullopt : std::optional(value);
}

std::string_view to_string(BoundaryReason reason) {
  return name_of<BoundaryReason::run_end>(reason, {"", "full", "epoch_end", "run_end"});
}

std::string_view to_string(StepOutcome outcome) {
  return name_of<StepOutcome::accumulated>(outcome, {"updated", "skipped_overflow", "skipped_empty", "accumulated"});
}

void WindowShape::set_steps_after(std::int64_t updates, std::int64_t set, bool repeated) {
  if (!repeated) forget_steps_after(updates - 1);
  std::erase_if(steps_set, [updates](const LengthChange& each) { return each.from == updates; });
  const auto later = std::ranges::upper_bound(steps_set, updates, {}, &LengthChange::from);
  steps_set.insert(later, {updates, set});
}

void WindowShape::forget_steps_after(std::int64_t updates) {
  std::erase_if(steps_set, [updates](const LengthChange& each) { return each.from > updates; });
}

WindowPosition WindowPosition::with_steps_of(const WindowPosition& other) const {
  WindowPosition at = *this;
  at.next_steps_ = other.next_steps_;
  return at;
}

WindowPosition WindowPosition::with_schedule_of(const WindowPosition& other) const {
  WindowPosition at = *this;
  at.schedule_position_ = other.schedule_position_;
  at.schedule_calls_ = other.schedule_calls_;
  at.guard_count_ = other.guard_count_;
  at.skipped_samples_ = other.skipped_samples_;  // a schedule in samples does not count them
  return at;
}

AccumulationWindow::AccumulationWindow(WindowShape shape) : shape_(resolved(std::move(shape))) {}

std::optional<MicroPlan> AccumulationWindow::move(bool planned) {
  const WindowPosition before = at_;
  std::int64_t dropped = 0;
  WindowTransition transition(shape_, at_);
  auto micro = planned ? transition.advance(dropped) : transition.begin(dropped);
  if (!micro) return std::nullopt;
  held_ = false;
  epoch_ends_ = micro->epoch_ends;
  if (micro->position == 0) window_size_ = size_of_window(shape_, before);
  micro->window_size = std::max(window_size_, micro->position + 1);
  micro->division = division_of(shape_, at_, *micro);
  last_ticks_ = micro->schedule_ticks;
  micro->schedule_position = at_.schedule_position_;
  return micro;
}

std::optional<MicroPlan> AccumulationWindow::next() {
  return move(true);
}

std::optional<MicroPlan> AccumulationWindow::peek() const {
  AccumulationWindow copy = *this;
  return copy.next();
}

void AccumulationWindow::announce_end(std::int64_t remaining) {
  std::int64_t dropped = 0;
  if (shape_.batches_per_epoch != unknown_length || !WindowTransition(shape_, at_).find_batch(dropped)) return;
  if (at_.batch_ + remaining <= 0) return;
  at_.epoch_length_ = at_.batch_ + std::max<std::int64_t>(remaining, 0);
  if (at_.position_ > 0) window_size_ = size_of_window(shape_, at_);
}

MicroPlan AccumulationWindow::count() {
  auto micro = move(false);
  if (!micro) throw std::logic_error("AccumulationWindow: a micro-step was counted after the end of the run");
  // A modulo counter runs on whether or not the loop steps, and a flushed epoch is over; the others wait for the step.
  const bool waits = micro->reason == BoundaryReason::full && !counts_modulo(shape_);
  if (micro->update && !waits) WindowTransition(shape_, at_).close_window(*micro);
  return *micro;
}

// A taken boundary is distinguished from a due one by the N of the window, which is 0 until the next one opens: the
// schedule is called after the step and must still know that this micro-step was a boundary.
bool AccumulationWindow::boundary_due() const {
  return at_.at_boundary_ && (counts_modulo(shape_) || at_.steps_ > 0);
}

bool AccumulationWindow::take_boundary() {
  if (!boundary_due()) return false;
  if (at_.position_ > 0) {
    MicroPlan micro;
    micro.reason = BoundaryReason::full;
    WindowTransition(shape_, at_).close_window(micro);
  }
  if (!counts_modulo(shape_)) at_.steps_ = 0;
  return true;
}

std::int64_t AccumulationWindow::call_schedule() {
  if (held_ && follows_updates(shape_.knobs.schedule_clock)) return 0;
  // N is that of the micro-step's window, even after its boundary.
  WindowPosition counted = at_;
  if (at_.at_boundary_ && at_.position_ == 0 && counted.updates_ > 0) --counted.updates_;
  return WindowTransition(shape_, at_).move_schedule(epoch_ends_, WindowTransition(shape_, counted).scheduled_steps());
}

std::int64_t AccumulationWindow::call_schedule(FollowingSchedule& schedule, bool skipped) const {
  AccumulationWindow own = *this;
  own.shape_.schedule_total = schedule.total;
  own.at_.guard_count_ = schedule.guard_count;
  own.report(skipped ? StepOutcome::skipped_overflow : StepOutcome::updated);
  const std::int64_t ticks = own.call_schedule();
  schedule.position += ticks;
  schedule.guard_count = own.at_.guard_count_;
  return ticks;
}

void AccumulationWindow::pass_updates(std::int64_t updates) {
  if (updates <= 0) return;
  WindowWalk walk(shape_, at_);
  walk.to({.per_update = 1}, at_.updates_ + updates);
  restore(walk.at());
}

void AccumulationWindow::report(StepOutcome outcome) {
  const bool skipped = outcome != StepOutcome::updated;
  if (skipped) at_.skipped_samples_ += at_.window_samples_;
  held_ = skipped && (shape_.schedule_in_samples || shape_.knobs.overflow == OverflowPolicy::hold);
  if (!held_) return;
  const ScheduleClock clock = shape_.knobs.schedule_clock;
  if (!follows_updates(clock) && clock != ScheduleClock::every_nth_call) return;
  at_.schedule_position_ -= last_ticks_;
  at_.guard_count_ -= last_ticks_;
  last_ticks_ = 0;
}

void AccumulationWindow::set_steps(std::int64_t steps) {
  at_.next_steps_ = std::max<std::int64_t>(steps, 1);
  if (at_.position_ == 0 || shape_.knobs.boundary_compare == BoundaryCompare::plan) return;
  window_size_ = size_of_window(shape_, at_);
}

void AccumulationWindow::change_steps(std::int64_t steps) {
  shape_.set_steps_after(at_.updates_, std::max<std::int64_t>(steps, 1));
  set_steps(steps);
}

std::optional<std::int64_t> AccumulationWindow::steps_set_here() const {
  return at_.position_ == 0 ? steps_set_after(shape_, at_.updates_) : std::nullopt;
}

void AccumulationWindow::seek(std::int64_t micro_step, std::optional<std::int64_t> schedule_position) {
  WindowWalk walk(shape_);
  if (micro_step > 1) walk.to({.per_micro_step = 1}, micro_step - 1);
  restore(walk.at());
  if (at_.micro_step_ < micro_step) next();  // which also sets the facts of the last micro-step
  if (!schedule_position) return;
  at_.guard_count_ -= at_.schedule_position_ - *schedule_position;
  at_.schedule_position_ = *schedule_position;
}

void AccumulationWindow::restore(const WindowPosition& position) {
  at_ = position;
  held_ = epoch_ends_ = false;
  last_ticks_ = 0;
  window_size_ = at_.position_ > 0 ? size_of_window(shape_, at_) : 0;
}

std::optional<std::int64_t> AccumulationWindow::missed_end(const WindowPosition& position) const {
  if (position.position_ == 0 || position.at_boundary_) return std::nullopt;
  const BoundaryCompare compare = shape_.knobs.boundary_compare;
  const bool same_steps = !has_length_schedule(shape_.knobs.group_length) && position.next_steps_ == 0;
  const std::int64_t steps = compare == BoundaryCompare::plan ? position.steps_ : shape_.steps;
  const bool missed = (compare == BoundaryCompare::plan || (compare == BoundaryCompare::exact && same_steps)) &&
                      position.counter_ >= steps;
  return missed ? std::optional(steps) : std::nullopt;
}

void AccumulationWindow::restore_counts(const WindowPosition& position) {
  restore(position.with_schedule_of(at_));
}

void AccumulationWindow::restore_schedule(const WindowPosition& position) {
  restore(at_.with_schedule_of(position));
}

void AccumulationWindow::lose_open_window(bool recount) {
  WindowPosition at = at_;
  at.position_ = 0;
  if (recount) at.counter_ = 0;
  restore(at);
}

void AccumulationWindow::forget_schedule_calls() {
  at_.schedule_calls_ = 0;
}

void AccumulationWindow::force_boundary(bool due) {
  WindowPosition at = at_;
  at.at_boundary_ = due;
  restore(at);
}

void AccumulationWindow::resume_at(std::int64_t micro_step) {
  WindowPosition at;
  at.micro_step_ = at.batch_ = at.counter_ = at.schedule_position_ = micro_step;
  at.updates_ = micro_step / shape_.steps;
  at.at_boundary_ = micro_step % shape_.steps == 0 || micro_step == shape_.max_iters;
  restore(at);
}

WindowTotals total_windows(const WindowShape& shape) {
  const WindowShape whole = resolved(shape);
  WindowWalk walk(whole);
  walk.to_end();
  const WindowPosition& end = walk.at();
  return {.micro_steps = end.micro_step(),
          .updates = end.updates(),
          .epochs_started = walk.last_epoch() + 1,
          .schedule_ticks = end.schedule_position(),
          .samples = end.passed_samples(),
          .dropped_batches = walk.dropped_batches(),
          .left_over_micro_steps = end.position()};
}

std::vector<MicroPlan> preview_windows(const WindowShape& shape, std::int64_t count) {
  AccumulationWindow window(shape);
  std::vector<MicroPlan> plans;
  while (static_cast<std::int64_t>(plans.size()) < count) {
    const auto micro = window.next();
    if (!micro) break;
    plans.push_back(*micro);
  }
  return plans;
}

std::int64_t first_epoch_end(const WindowShape& shape) {
  const WindowShape whole = resolved(shape);
  WindowWalk walk(whole);
  return walk.to_epoch_end() ? walk.at().micro_step() : 0;
}

}  // namespace accrue
