// SPDX-License-Identifier: Apache-2.0
#include "window_transition.h"

#include <algorithm>
#include <iterator>

namespace accrue {

std::optional<std::int64_t> steps_set_after(const WindowShape& shape, std::int64_t updates) {
  const auto set = std::ranges::upper_bound(shape.steps_set, updates, {}, &LengthChange::from);
  if (set == shape.steps_set.begin() || std::prev(set)->from != updates) return std::nullopt;
  return std::prev(set)->steps;
}

std::int64_t WindowTransition::scheduled_steps() const {
  // N set by hand comes first, then the ramp of the batch size, then the schedule of lengths.
  if (at_.next_steps_ > 0) return at_.next_steps_;
  if (shape_.rampup) return std::max<std::int64_t>(batch_at(*shape_.rampup, at_.samples_) / shape_.samples.each, 1);
  if (!has_length_schedule(shape_.knobs.group_length)) return shape_.steps;
  const std::int64_t now = shape_.knobs.group_length == GroupLength::by_update ? at_.updates_ : at_.epoch_;
  const auto next = std::ranges::upper_bound(shape_.length_schedule, now, {}, &LengthChange::from);
  return next == shape_.length_schedule.begin() ? shape_.steps : std::prev(next)->steps;
}

std::int64_t WindowTransition::compared_steps() const {
  // A window that is compared with its plan keeps the N with which it opened.
  const bool locked = shape_.knobs.boundary_compare == BoundaryCompare::plan && at_.position_ > 0;
  return locked ? at_.steps_ : scheduled_steps();
}

std::int64_t WindowTransition::length_of_epoch() const {
  if (shape_.batches_per_epoch != unknown_length) return shape_.batches_per_epoch;
  return at_.epoch_length_ > 0 ? at_.epoch_length_ : no_end;
}

std::int64_t WindowTransition::iteration() const {
  const bool runs_on = counts_modulo(shape_) && shape_.knobs.counter_reset == CounterReset::never;
  return runs_on ? at_.counter_ : at_.micro_step_;
}

// Accelerate's scheduler takes each of its inner steps only while `_step_count <= total_steps`. guard_count is that
// count less the 1 with which PyTorch's begins, so total - guard_count steps are left.
std::int64_t WindowTransition::guarded_ticks(std::int64_t ticks) const {
  if (!shape_.knobs.total_guard || !shape_.schedule_total) return ticks;
  return std::clamp<std::int64_t>(*shape_.schedule_total - at_.guard_count_, 0, ticks);
}

bool WindowTransition::limit_reached() const {
  return shape_.batches_per_epoch == 0 || (shape_.max_epochs && at_.epoch_ >= *shape_.max_epochs) ||
         (shape_.max_updates && at_.updates_ >= *shape_.max_updates) ||
         (shape_.max_micro_steps && at_.micro_step_ >= *shape_.max_micro_steps);
}

void WindowTransition::begin_next_epoch() {
  ++at_.epoch_;
  at_.batch_ = 0;
  at_.epoch_length_ = 0;
  if (shape_.knobs.counter_reset == CounterReset::epoch_end) at_.counter_ = 0;
}

/// Number of epochs, from this one on, with its N and length while no update happens; no_end if all have them. A
/// stream's next epoch may have another length.
std::int64_t WindowTransition::epochs_of_same_steps() const {
  std::int64_t end = shape_.max_epochs.value_or(no_end);
  if (shape_.knobs.group_length == GroupLength::by_epoch)
    for (const LengthChange& change : shape_.length_schedule)
      if (change.from > at_.epoch_) end = std::min(end, change.from);
  if (end == no_end) return no_end;
  return shape_.batches_per_epoch == unknown_length ? 1 : end - at_.epoch_;
}

// With L the epoch's length and N the window's: a batch is trained on if the epoch has one left, or if a window that is
// open at its end is filled by repetition (pad_repeat). Where the tail is dropped, no window opens on fewer than N
// batches; they are added to `dropped`.
bool WindowTransition::find_batch(std::int64_t& dropped) {
  while (!limit_reached()) {
    const std::int64_t length = length_of_epoch();
    const bool pads = shape_.knobs.tail == EpochTail::pad_repeat && at_.position_ > 0;
    const std::int64_t rest = length - at_.batch_;
    if (rest > 0 || pads) {
      if (!drops_tail(shape_.knobs) || at_.position_ > 0 || rest >= scheduled_steps()) return true;
      dropped += rest;
      if (rest == length) {  // an epoch shorter than N, like those after it until N changes
        const std::int64_t alike = epochs_of_same_steps();
        if (alike == no_end) return false;
        dropped += rest * (alike - 1);
        at_.epoch_ += alike - 1;
      }
    }
    begin_next_epoch();
  }
  return false;
}

bool WindowTransition::is_full(std::int64_t steps) const {
  switch (shape_.knobs.boundary_compare) {
    case BoundaryCompare::exact:
    case BoundaryCompare::plan:
      return at_.counter_ == steps;
    case BoundaryCompare::at_least:
      return at_.counter_ >= steps;
    case BoundaryCompare::modulo:
      return at_.counter_ % steps == 0;
  }
  return false;
}

bool WindowTransition::ends_run(const MicroPlan& micro) const {
  if (shape_.max_iters) return iteration() == *shape_.max_iters;
  const bool last_batch = micro.epoch_ends && shape_.max_epochs && micro.epoch + 1 >= *shape_.max_epochs;
  return last_batch || (shape_.max_micro_steps && micro.micro_step >= *shape_.max_micro_steps);
}

BoundaryReason WindowTransition::boundary_reason(const MicroPlan& micro, bool full) const {
  if (full) return BoundaryReason::full;
  if (micro.epoch_ends && shape_.knobs.tail == EpochTail::flush) return BoundaryReason::epoch_end;
  if (shape_.knobs.run_tail == RunTail::flush && ends_run(micro)) return BoundaryReason::run_end;
  return BoundaryReason::none;
}

/// Inner steps of one call to the schedule, after a micro-step that was or was not a boundary. update_times_world is
/// Accelerate's: its scheduler is written for one process, and an update of n processes takes n times the data, so the
/// schedule takes n steps.
std::int64_t WindowTransition::schedule_ticks(bool epoch_ends, std::int64_t steps) const {
  switch (shape_.knobs.schedule_clock) {
    case ScheduleClock::update:
      if (!at_.at_boundary_) return 0;
      return shape_.schedule_in_samples ? at_.window_samples_ : guarded_ticks(1);
    case ScheduleClock::update_times_world:
      return at_.at_boundary_ ? guarded_ticks(shape_.world) : 0;
    case ScheduleClock::micro_step:
    case ScheduleClock::external:
      return 1;  // in a run the loop calls the scheduler once per micro-step
    case ScheduleClock::epoch:
      return epoch_ends ? 1 : 0;
    case ScheduleClock::every_nth_call:
      return at_.schedule_calls_ >= steps ? 1 : 0;
  }
  return 0;
}

std::int64_t WindowTransition::move_schedule(bool epoch_ends, std::int64_t steps) {
  ++at_.schedule_calls_;
  const std::int64_t ticks = schedule_ticks(epoch_ends, steps);
  if (ticks > 0) at_.schedule_calls_ = 0;
  at_.schedule_position_ += ticks;
  at_.guard_count_ += ticks;
  if (!at_.at_boundary_ && shape_.knobs.micro_bump) ++at_.guard_count_;
  return ticks;
}

// Moves the counter: modulo counters run on, and only a flush resets them, even one for which a full window leaves
// nothing to do. The others count within a window, and keep their phase after a flush if K4 is never.
void WindowTransition::close_window(const MicroPlan& micro) {
  ++at_.updates_;
  at_.position_ = 0;
  at_.samples_ += at_.window_samples_;
  const bool flushes = micro.epoch_ends && shape_.knobs.tail == EpochTail::flush;
  const bool full = micro.reason == BoundaryReason::full && !flushes;
  if (micro.reason == BoundaryReason::full && !counts_modulo(shape_)) at_.counter_ = 0;
  if (!full && shape_.knobs.counter_reset != CounterReset::never) at_.counter_ = 0;
  if (const auto steps = steps_set_after(shape_, at_.updates_)) at_.next_steps_ = *steps;
}

bool WindowTransition::is_last_batch(bool update) const {
  // An epoch ends with its last batch, or if the tail is dropped with its last whole window.
  const std::int64_t rest = length_of_epoch() - at_.batch_;  // after this micro-step
  if (shape_.knobs.tail == EpochTail::pad_repeat) return rest <= 0 && update;
  if (rest == 0) return true;
  if (!drops_tail(shape_.knobs) || !update) return false;
  WindowPosition next = at_;
  ++next.updates_;
  next.position_ = 0;
  next.samples_ += next.window_samples_;
  return rest < WindowTransition(shape_, next).scheduled_steps();
}

std::optional<MicroPlan> WindowTransition::begin(std::int64_t& dropped) {
  if (!find_batch(dropped)) return std::nullopt;
  if (at_.position_ == 0) {
    at_.steps_ = scheduled_steps();
    at_.window_samples_ = 0;
  }
  MicroPlan micro;
  micro.steps = compared_steps();  // of this epoch, not of the one before
  micro.micro_step = ++at_.micro_step_;
  micro.epoch = at_.epoch_;
  micro.batch = at_.batch_ % length_of_epoch();
  micro.window = at_.updates_;
  micro.position = at_.position_;
  micro.samples_before = at_.samples_ - at_.skipped_samples_;
  at_.window_samples_ += micro.batch + 1 == length_of_epoch() ? shape_.samples.last : shape_.samples.each;
  ++at_.batch_;
  ++at_.position_;
  ++at_.counter_;
  const bool full = is_full(micro.steps);
  micro.epoch_ends = is_last_batch(full);
  if (micro.epoch_ends && drops_tail(shape_.knobs)) micro.dropped_after = length_of_epoch() - at_.batch_;
  micro.reason = boundary_reason(micro, full);
  micro.update = at_.at_boundary_ = micro.reason != BoundaryReason::none;
  micro.sync = shape_.knobs.reduce_when == ReduceWhen::every_micro_step ||
               (shape_.knobs.reduce_when == ReduceWhen::boundary && micro.update);
  return micro;
}

std::optional<MicroPlan> WindowTransition::advance(std::int64_t& dropped) {
  auto micro = begin(dropped);
  if (!micro) return micro;
  if (micro->update) close_window(*micro);
  micro->schedule_ticks = move_schedule(micro->epoch_ends, micro->steps);
  micro->schedule_position = at_.schedule_position_;
  return micro;
}

}  // namespace accrue
