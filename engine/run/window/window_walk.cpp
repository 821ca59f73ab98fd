// SPDX-License-Identifier: Apache-2.0
#include "window_walk.h"

#include <algorithm>

#include "window_transition.h"

namespace accrue {

struct WalkStride {
  std::int64_t most = 0;  ///< repetitions before something else happens, without the run's limits
  std::int64_t micro_steps = 0;
  std::int64_t epochs = 0;
  std::int64_t batches = 0;  ///< of an epoch
  std::int64_t updates = 0;
  std::int64_t positions = 0;
  std::int64_t counter = 0;
  std::int64_t ticks = 0;
  std::int64_t calls = 0;
  std::int64_t guard = 0;
  std::int64_t dropped = 0;
  std::int64_t samples = 0;
  std::int64_t window_samples = 0;
};

namespace {

/// Returns the number of times that `each` can be added to `now` with the sum still below the limit: the largest k >= 0
/// with now + k each <= limit - 1.
std::int64_t times_below(std::int64_t limit, std::int64_t now, std::int64_t each) {
  return each <= 0 ? no_end : std::max<std::int64_t>((limit - now - 1) / each, 0);
}

/// Next change of N after that update or epoch, in an ascending list; no_end if there is none.
std::int64_t next_change(const std::vector<LengthChange>& changes, std::int64_t after) {
  const auto next = std::ranges::upper_bound(changes, after, {}, &LengthChange::from);
  return next == changes.end() ? no_end : next->from;
}

}  // namespace

std::int64_t WindowWalk::count(const WalkClock& clock) const {
  return clock.per_micro_step * at_.micro_step_ + clock.per_update * at_.updates_ + clock.per_sample * at_.samples() +
         clock.per_tick * at_.schedule_position_;
}

bool WindowWalk::reached(const Goal& goal, const MicroPlan& micro) const {
  return (goal.target != no_target && count(goal.clock) >= goal.target) || (goal.epoch_end && micro.epoch_ends);
}

/// Laps of an epoch that is shorter than the window that it fills by repetition. A lap has L batches, of which the last
/// may have fewer samples.
WalkStride WindowWalk::laps_of_epoch(const WalkStride& one, std::int64_t length, std::int64_t most) const {
  WalkStride stride = one;
  stride.most = most;
  for (std::int64_t WalkStride::*each :
       {&WalkStride::micro_steps, &WalkStride::batches, &WalkStride::positions, &WalkStride::counter,
        &WalkStride::ticks, &WalkStride::calls, &WalkStride::guard, &WalkStride::window_samples})
    stride.*each *= length;
  stride.window_samples -= shape_.samples.each - shape_.samples.last;
  return stride;
}

/// Micro-steps in the middle of a window, up to its last, the epoch's last or the schedule's next step: the smallest of
/// L - batch - 1, of N - counter - 1 if the window still closes, and of N - calls - 1 if the schedule counts calls.
WalkStride WindowWalk::inside_window() {
  const WindowTransition now(shape_, at_);
  const std::int64_t steps = now.compared_steps();
  const std::int64_t length = now.length_of_epoch();
  const ScheduleClock clock = shape_.knobs.schedule_clock;
  WalkStride stride;
  stride.micro_steps = stride.batches = stride.positions = stride.counter = 1;
  stride.window_samples = shape_.samples.each;
  stride.ticks = clock == ScheduleClock::micro_step || clock == ScheduleClock::external ? 1 : 0;
  stride.calls = 1 - stride.ticks;
  stride.guard = stride.ticks + (shape_.knobs.micro_bump ? 1 : 0);
  const std::int64_t batch = shape_.knobs.tail == EpochTail::pad_repeat ? at_.batch_ % length : at_.batch_;
  stride.most = length == no_end ? no_end : length - 1 - batch;
  const bool closes = counts_modulo(shape_) || shape_.knobs.boundary_compare == BoundaryCompare::at_least ||
                      at_.counter_ < steps;  // an exact counter past N never equals it
  const std::int64_t counted = counts_modulo(shape_) ? at_.counter_ % steps : at_.counter_;
  const bool by_calls = clock == ScheduleClock::every_nth_call;
  std::int64_t room = closes ? steps - counted - 1 : no_end;
  if (by_calls) room = std::min(room, steps - at_.schedule_calls_ - 1);
  if (!by_calls || closes || at_.schedule_calls_ > 0) {
    stride.most = std::min(stride.most, room);
    const bool laps = shape_.knobs.tail == EpochTail::pad_repeat && closes && length <= room;
    return laps ? laps_of_epoch(stride, length, room / length) : stride;
  }
  // From here on only the schedule advances.
  stride.micro_steps = stride.batches = stride.positions = stride.counter = steps;
  stride.window_samples *= steps;
  stride.ticks = 1;
  stride.calls = 0;
  stride.guard = 1;
  if (stride.most != no_end) stride.most /= steps;
  return stride;
}

/// Full windows from the start of one, up to the epoch's last. Of the floor((L - batch) / N) windows that are left one
/// stays for single steps: its last micro-step may end the epoch.
WalkStride WindowWalk::full_window() {
  const WindowTransition now(shape_, at_);
  const std::int64_t steps = now.scheduled_steps();
  const bool in_phase = counts_modulo(shape_) ? at_.counter_ % steps == 0 : at_.counter_ == 0;
  const std::int64_t samples = steps * shape_.samples.each;
  WalkStride stride;
  if (at_.position_ != 0 || at_.steps_ != steps || !in_phase || at_.window_samples_ != samples) return stride;
  stride.micro_steps = stride.batches = steps;
  stride.samples = samples;
  stride.updates = 1;
  stride.counter = counts_modulo(shape_) ? steps : 0;
  switch (shape_.knobs.schedule_clock) {
    case ScheduleClock::update:
      stride.ticks = shape_.schedule_in_samples ? samples : now.guarded_ticks(1);
      break;
    case ScheduleClock::update_times_world:
      stride.ticks = now.guarded_ticks(shape_.world);
      break;
    case ScheduleClock::micro_step:
    case ScheduleClock::external:
      stride.ticks = steps;
      break;
    case ScheduleClock::every_nth_call:
      if (at_.schedule_calls_ >= steps) return {};
      stride.ticks = 1;
      break;
    case ScheduleClock::epoch:
      break;
  }
  stride.calls = stride.ticks > 0 ? 0 : steps;
  // A bump counts every micro-step that is no boundary: N - 1 of a window.
  stride.guard = stride.ticks + (shape_.knobs.micro_bump ? steps - 1 : 0);
  const std::int64_t length = now.length_of_epoch();
  stride.most = length == no_end ? no_end : (length - at_.batch_) / steps - 1;
  return stride;
}

/// Increase since an earlier end of an epoch.
WalkStride WindowWalk::since(const WindowWalk& earlier) const {
  const WindowPosition& then = earlier.at_;
  WalkStride stride;
  stride.micro_steps = at_.micro_step_ - then.micro_step_;
  stride.epochs = at_.epoch_ - then.epoch_;
  stride.updates = at_.updates_ - then.updates_;
  stride.counter = at_.counter_ - then.counter_;
  stride.ticks = at_.schedule_position_ - then.schedule_position_;
  stride.guard = at_.guard_count_ - then.guard_count_;
  stride.dropped = dropped_ - earlier.dropped_;
  stride.samples = at_.samples_ - then.samples_;
  // Counters that an update or a schedule step resets are unchanged after every repetition.
  stride.positions = stride.updates > 0 ? 0 : at_.position_ - then.position_;
  stride.calls = stride.ticks > 0 ? 0 : at_.schedule_calls_ - then.schedule_calls_;
  stride.window_samples = stride.updates > 0 ? 0 : at_.window_samples_ - then.window_samples_;
  return stride;
}

/// Whether the schedule has reached its total and stops.
bool WindowWalk::guard_is_used_up() const {
  return follows_updates(shape_.knobs.schedule_clock) && shape_.knobs.total_guard && shape_.schedule_total &&
         at_.guard_count_ >= *shape_.schedule_total;
}

/// Returns the number of repetitions of the increase since an earlier end of an epoch, without the run's limits: always
/// if the deciding state is the same as then, and until a counter reaches N if only that counter grew.
std::int64_t WindowWalk::repeats(const WindowWalk& earlier) {
  WindowPosition then = earlier.at_;
  const GroupLength length = shape_.knobs.group_length;
  const bool same_lengths =
      next_change(shape_.steps_set, then.updates_) > at_.updates_ &&
      (length != GroupLength::by_update || next_change(shape_.length_schedule, then.updates_) > at_.updates_) &&
      (length != GroupLength::by_epoch || next_change(shape_.length_schedule, then.epoch_) > at_.epoch_) &&
      (!shape_.rampup || next_batch_change(*shape_.rampup, then.samples_) > at_.samples_);
  const bool same_state = (at_.position_ > 0) == (then.position_ > 0) && at_.batch_ == then.batch_ &&
                          at_.steps_ == then.steps_ && at_.next_steps_ == then.next_steps_ &&
                          at_.epoch_length_ == then.epoch_length_ && at_.at_boundary_ == then.at_boundary_ &&
                          (at_.updates_ == then.updates_ || at_.window_samples_ == then.window_samples_) &&
                          guard_is_used_up() == earlier.guard_is_used_up();
  if (!same_lengths || !same_state) return 0;
  const WindowTransition now(shape_, at_);
  if (shape_.max_iters &&
      (now.iteration() < *shape_.max_iters) != (WindowTransition(shape_, then).iteration() < *shape_.max_iters))
    return 0;
  const std::int64_t steps = now.compared_steps();
  // A count that only grows repeats its behaviour until it reaches N.
  const auto until_full = [steps](std::int64_t count, std::int64_t added) {
    return count >= added && added > 0 ? times_below(steps, count, added) : 0;
  };
  std::int64_t times = no_end;
  if (shape_.knobs.schedule_clock == ScheduleClock::every_nth_call && at_.schedule_calls_ != then.schedule_calls_)
    times = at_.schedule_position_ == then.schedule_position_
                ? until_full(at_.schedule_calls_, at_.schedule_calls_ - then.schedule_calls_)
                : 0;
  const bool modulo = counts_modulo(shape_);
  const std::int64_t added = at_.counter_ - then.counter_;
  const bool never_full = !modulo && shape_.knobs.boundary_compare != BoundaryCompare::at_least &&
                          std::min(at_.counter_, then.counter_) >= std::max(steps, at_.steps_);
  if (never_full || (modulo ? added % steps == 0 : added == 0)) return times;
  if (added != at_.micro_step_ - then.micro_step_) return 0;  // it was reset on the way
  return std::min(times, until_full(modulo ? at_.counter_ % steps : at_.counter_, added));
}

/// Returns the number of times that the stride can be taken: every limit of the run, change of N and goal stays ahead,
/// to be reached by single steps.
std::int64_t WindowWalk::repetitions(const WalkStride& stride, const Goal& goal) {
  std::int64_t times = stride.most;
  const auto stay_below = [&times](const std::optional<std::int64_t>& limit, std::int64_t now, std::int64_t each) {
    if (limit) times = std::min(times, times_below(*limit, now, each));
  };
  stay_below(shape_.max_micro_steps, at_.micro_step_, stride.micro_steps);
  stay_below(shape_.max_updates, at_.updates_, stride.updates);
  if (shape_.max_epochs) stay_below(*shape_.max_epochs - 1, at_.epoch_, stride.epochs);
  const std::int64_t iteration = WindowTransition(shape_, at_).iteration();
  const bool counts_on = counts_modulo(shape_) && shape_.knobs.counter_reset == CounterReset::never;
  if (shape_.max_iters && iteration < *shape_.max_iters)
    stay_below(shape_.max_iters, iteration, counts_on ? stride.counter : stride.micro_steps);
  const auto stay_before_change = [&](const std::vector<LengthChange>& changes, std::int64_t now, std::int64_t each) {
    if (const std::int64_t next = next_change(changes, now); next != no_end) stay_below(next, now, each);
  };
  stay_before_change(shape_.steps_set, at_.updates_, stride.updates);
  if (shape_.knobs.group_length == GroupLength::by_update)
    stay_before_change(shape_.length_schedule, at_.updates_, stride.updates);
  if (shape_.knobs.group_length == GroupLength::by_epoch)
    stay_before_change(shape_.length_schedule, at_.epoch_, stride.epochs);
  if (shape_.rampup) stay_below(next_batch_change(*shape_.rampup, at_.samples_), at_.samples_, stride.samples);
  const bool guarded =
      follows_updates(shape_.knobs.schedule_clock) && shape_.knobs.total_guard && shape_.schedule_total;
  // The count may come to total itself. Only the update that would pass it takes fewer ticks, and is left to a single
  // step.
  if (guarded && !guard_is_used_up()) stay_below(*shape_.schedule_total + 1, at_.guard_count_, stride.guard);
  if (goal.target != no_target)
    stay_below(goal.target, count(goal.clock),
               goal.clock.per_micro_step * stride.micro_steps + goal.clock.per_update * stride.updates +
                   goal.clock.per_sample * (stride.samples + stride.window_samples) +
                   goal.clock.per_tick * stride.ticks);
  return std::max<std::int64_t>(times, 0);
}

void WindowWalk::take(const WalkStride& stride, std::int64_t times) {
  at_.micro_step_ += times * stride.micro_steps;
  at_.epoch_ += times * stride.epochs;
  at_.batch_ += times * stride.batches;
  at_.updates_ += times * stride.updates;
  at_.position_ += times * stride.positions;
  at_.counter_ += times * stride.counter;
  at_.schedule_position_ += times * stride.ticks;
  at_.schedule_calls_ += times * stride.calls;
  at_.guard_count_ += times * stride.guard;
  dropped_ += times * stride.dropped;
  at_.samples_ += times * stride.samples;
  at_.window_samples_ += times * stride.window_samples;
  last_epoch_ += times * stride.epochs;
}

/// Takes the increase since an earlier end of an epoch as often as it repeats; none if it repeats forever.
std::optional<std::int64_t> WindowWalk::take_again(const WindowWalk& earlier, const Goal& goal) {
  WalkStride stride = since(earlier);
  stride.most = repeats(earlier);
  const std::int64_t times = repetitions(stride, goal);
  if (times == no_end) return std::nullopt;
  take(stride, times);
  return times;
}

// Compares the end of an epoch with that of the previous epoch; only a counter may have grown since. Compares it also
// with an earlier one, which is replaced after twice as many epochs each time (Brent's cycle search). So a repetition
// is found within three times its length.
bool WindowWalk::walk(const Goal& goal) {
  std::optional<WindowWalk> before, earlier;
  std::int64_t epochs = 0, wait = 1;
  while (const auto micro = WindowTransition(shape_, at_).advance(dropped_)) {
    last_epoch_ = micro->epoch;
    if (reached(goal, *micro)) return true;
    const WalkStride near = micro->update ? full_window() : inside_window();
    const std::int64_t times = repetitions(near, goal);
    if (times == no_end) return false;
    take(near, times);
    if (!micro->epoch_ends) continue;
    if (before && !take_again(*before, goal)) return false;
    before.emplace(*this);
    const auto taken = earlier ? take_again(*earlier, goal) : 0;
    if (!taken) return false;
    if (*taken > 0) {
      before.reset();
      wait = 1;
    } else if (earlier && ++epochs < wait) {
      continue;
    }
    earlier.emplace(*this);
    epochs = 0;
    wait *= 2;
  }
  return false;
}

bool WindowWalk::to(const WalkClock& clock, std::int64_t target) {
  return walk({.clock = clock, .target = target});
}

bool WindowWalk::to_epoch_end() {
  return walk({.epoch_end = true});
}

void WindowWalk::to_end() {
  walk({});
}

std::int64_t size_of_window(const WindowShape& shape, const WindowPosition& at) {
  WindowWalk walk(shape, at);
  walk.to({.per_update = 1}, at.updates() + 1);
  return at.position() + walk.at().micro_step() - at.micro_step();
}

}  // namespace accrue
