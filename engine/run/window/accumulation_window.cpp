// SPDX-License-Identifier: Apache-2.0
// One transition decides everything: advance() moves a WindowPosition by one micro-step and says what that micro-step
// is. next() adds what needs a look ahead (the size of the window), by running the same transition on a copy; totals
// run it with whole windows skipped. So a preview, a trace and a training run cannot disagree.
#include "accrue/run/accumulation_window.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace accrue {
namespace {

/// N as the length schedule has it at an update or an epoch (K1).
std::int64_t scheduled_steps(const WindowShape& shape, const WindowPosition& at) {
  if (at.next_steps > 0) return at.next_steps;
  std::int64_t steps = shape.steps;
  if (!has_length_schedule(shape.knobs.group_length)) return steps;
  const std::int64_t now = shape.knobs.group_length == GroupLength::by_update ? at.updates : at.epoch;
  for (const LengthChange& change : shape.length_schedule)
    if (change.from <= now) steps = change.steps;
  return steps;
}

/// N that was set by hand after that many updates; the last such entry counts.
std::optional<std::int64_t> steps_set_after(const WindowShape& shape, std::int64_t updates) {
  std::optional<std::int64_t> steps;
  for (const LengthChange& change : shape.steps_set)
    if (change.from == updates) steps = change.steps;
  return steps;
}

/// N that the boundary test compares with: fixed when the window opens where K7 is plan, else whatever N is now.
std::int64_t compared_steps(const WindowShape& shape, const WindowPosition& at) {
  const bool locked = shape.knobs.boundary_compare == BoundaryCompare::plan && at.position > 0;
  return locked ? at.steps : scheduled_steps(shape, at);
}

/// L of the current epoch; of a stream whose end is not announced, more than any run has.
std::int64_t length_of_epoch(const WindowShape& shape, const WindowPosition& at) {
  if (shape.batches_per_epoch != unknown_length) return shape.batches_per_epoch;
  return at.epoch_length > 0 ? at.epoch_length : std::numeric_limits<std::int64_t>::max() / 4;
}

bool limit_reached(const WindowShape& shape, const WindowPosition& at) {
  return shape.batches_per_epoch == 0 || (shape.max_epochs && at.epoch >= *shape.max_epochs) ||
         (shape.max_updates && at.updates >= *shape.max_updates) ||
         (shape.max_micro_steps && at.micro_step >= *shape.max_micro_steps);
}

void begin_next_epoch(const WindowShape& shape, WindowPosition& at) {
  ++at.epoch;
  at.batch = 0;
  at.epoch_length = 0;
  if (shape.knobs.counter_reset == CounterReset::epoch_end) at.counter = 0;
}

/// The last epoch in which a length schedule still changes N; past it an epoch that drops everything will do so for
/// ever.
std::int64_t last_length_change(const WindowShape& shape) {
  std::int64_t last = 0;
  for (const LengthChange& change : shape.length_schedule) last = std::max(last, change.from);
  return last;
}

/// Moves to the next batch that is trained on. Returns false when the run is over.
bool find_batch(const WindowShape& shape, WindowPosition& at, std::int64_t& dropped) {
  while (true) {
    if (limit_reached(shape, at)) return false;
    const std::int64_t length = length_of_epoch(shape, at);
    const bool pad = shape.knobs.tail == EpochTail::pad_repeat;
    if (at.batch >= length && !(pad && at.position > 0)) {
      begin_next_epoch(shape, at);
      continue;
    }
    const std::int64_t rest = length - at.batch;
    if (!drops_tail(shape.knobs) || at.position > 0 || rest >= scheduled_steps(shape, at)) return true;
    dropped += rest;
    if (rest == length && !shape.max_epochs && at.epoch > last_length_change(shape)) return false;
    begin_next_epoch(shape, at);
  }
}

bool is_full(const WindowShape& shape, std::int64_t counter, std::int64_t steps) {
  switch (shape.knobs.boundary_compare) {
    case BoundaryCompare::exact:
    case BoundaryCompare::plan:
      return counter == steps;
    case BoundaryCompare::at_least:
      return counter >= steps;
    case BoundaryCompare::modulo:
      return counter % steps == 0;
  }
  return false;
}

/// What max_iters is compared with: a counter that nothing resets is the run's micro-step, unless somebody set it
/// otherwise (a count restored from a resumed iteration).
std::int64_t iteration_of(const WindowShape& shape, const WindowPosition& at) {
  const bool runs_on =
      shape.knobs.boundary_compare == BoundaryCompare::modulo && shape.knobs.counter_reset == CounterReset::never;
  return runs_on ? at.counter : at.micro_step;
}

bool ends_run(const WindowShape& shape, const WindowPosition& at, const MicroPlan& micro) {
  if (shape.max_iters) return iteration_of(shape, at) == *shape.max_iters;
  const bool last_batch = micro.epoch_ends && shape.max_epochs && micro.epoch + 1 >= *shape.max_epochs;
  return last_batch || (shape.max_micro_steps && micro.micro_step >= *shape.max_micro_steps);
}

BoundaryReason boundary_reason(const WindowShape& shape, const WindowPosition& at, const MicroPlan& micro, bool full,
                               bool requested) {
  if (full) return BoundaryReason::full;
  if (micro.epoch_ends && shape.knobs.tail == EpochTail::flush) return BoundaryReason::epoch_end;
  if (shape.knobs.run_tail == RunTail::flush && ends_run(shape, at, micro)) return BoundaryReason::run_end;
  return requested ? BoundaryReason::requested : BoundaryReason::none;
}

std::int64_t guarded_ticks(const WindowShape& shape, const WindowPosition& at, std::int64_t ticks) {
  if (!shape.knobs.total_guard || !shape.schedule_total) return ticks;
  return std::clamp<std::int64_t>(*shape.schedule_total - at.guard_count, 0, ticks);
}

/// Inner steps of one call to the schedule, after a micro-step that was a boundary or was not.
std::int64_t schedule_ticks(const WindowShape& shape, const WindowPosition& at, bool epoch_ends, std::int64_t steps) {
  switch (shape.knobs.schedule_clock) {
    case ScheduleClock::update:
      return at.at_boundary ? guarded_ticks(shape, at, 1) : 0;
    case ScheduleClock::update_times_world:
      return at.at_boundary ? guarded_ticks(shape, at, shape.world) : 0;
    case ScheduleClock::micro_step:
    case ScheduleClock::external:
      return 1;  // in a run the loop calls the scheduler once a micro-step
    case ScheduleClock::epoch:
      return epoch_ends ? 1 : 0;
    case ScheduleClock::every_nth_call:
      return at.schedule_calls >= steps ? 1 : 0;
  }
  return 0;
}

/// The schedule is called once: the inner steps it takes.
std::int64_t move_schedule(const WindowShape& shape, WindowPosition& at, bool epoch_ends, std::int64_t steps) {
  ++at.schedule_calls;
  const std::int64_t ticks = schedule_ticks(shape, at, epoch_ends, steps);
  if (ticks > 0) at.schedule_calls = 0;
  at.schedule_position += ticks;
  at.guard_count += ticks;
  if (!at.at_boundary && shape.knobs.micro_bump) ++at.guard_count;
  return ticks;
}

bool counts_modulo(const WindowShape& shape) {
  return shape.knobs.boundary_compare == BoundaryCompare::modulo;
}

/// The window that the micro-step ended is closed. Where its counter goes: modulo counters run on and only a flush
/// resets them, also one that a full window leaves nothing to do; the others count within a window, and after a flush
/// keep their phase where K4 is never.
void close_window(const WindowShape& shape, WindowPosition& at, const MicroPlan& micro) {
  ++at.updates;
  at.position = 0;
  const bool flushes = micro.epoch_ends && shape.knobs.tail == EpochTail::flush;
  const bool full = micro.reason == BoundaryReason::full && !flushes;
  if (micro.reason == BoundaryReason::full && !counts_modulo(shape)) at.counter = 0;
  if (!full && shape.knobs.counter_reset != CounterReset::never) at.counter = 0;
  if (const auto steps = steps_set_after(shape, at.updates)) at.next_steps = *steps;
}

bool is_last_batch(const WindowShape& shape, const WindowPosition& at, bool update) {
  const std::int64_t rest = length_of_epoch(shape, at) - at.batch;  // after this micro-step
  if (shape.knobs.tail == EpochTail::pad_repeat) return rest <= 0 && update;
  if (rest == 0) return true;
  if (!drops_tail(shape.knobs) || !update) return false;
  WindowPosition next = at;
  ++next.updates;
  next.position = 0;
  return rest < scheduled_steps(shape, next);
}

/// A micro-step begins. Everything of MicroPlan but window_size, division and schedule. The window is not closed yet.
std::optional<MicroPlan> begin(const WindowShape& shape, WindowPosition& at, bool requested, std::int64_t& dropped) {
  if (!find_batch(shape, at, dropped)) return std::nullopt;
  if (at.position == 0) at.steps = scheduled_steps(shape, at);
  MicroPlan micro;
  micro.steps = compared_steps(shape, at);  // of this epoch, not of the one before
  micro.micro_step = ++at.micro_step;
  micro.epoch = at.epoch;
  micro.batch = at.batch % length_of_epoch(shape, at);
  micro.window = at.updates;
  micro.position = at.position;
  ++at.batch;
  ++at.position;
  ++at.counter;
  const bool full = is_full(shape, at.counter, micro.steps);
  micro.epoch_ends = is_last_batch(shape, at, full);
  if (micro.epoch_ends && drops_tail(shape.knobs)) micro.dropped_after = length_of_epoch(shape, at) - at.batch;
  micro.reason = boundary_reason(shape, at, micro, full, requested);
  micro.update = at.at_boundary = micro.reason != BoundaryReason::none;
  micro.sync = shape.knobs.reduce_when == ReduceWhen::every_micro_step ||
               (shape.knobs.reduce_when == ReduceWhen::boundary && micro.update);
  return micro;
}

/// One micro-step of a planned run, whole.
std::optional<MicroPlan> advance(const WindowShape& shape, WindowPosition& at, bool requested, std::int64_t& dropped) {
  auto micro = begin(shape, at, requested, dropped);
  if (!micro) return micro;
  if (micro->update) close_window(shape, at, *micro);
  micro->schedule_ticks = move_schedule(shape, at, micro->epoch_ends, micro->steps);
  micro->schedule_position = at.schedule_position;
  return micro;
}

/// More micro-steps than any window can have that closes at all: the longest N, or as many epochs as it takes until N
/// changes for the last time.
std::int64_t longest_window(const WindowShape& shape, const WindowPosition& at) {
  const std::int64_t steps = std::max(largest_steps(shape), at.next_steps);
  const bool by_epoch = shape.knobs.group_length == GroupLength::by_epoch;
  const std::int64_t length = shape.batches_per_epoch == unknown_length ? steps : shape.batches_per_epoch;
  const std::int64_t epochs = by_epoch ? last_length_change(shape) + 3 : 3;
  return 2 * steps + epochs * std::max<std::int64_t>(length, 1);
}

/// A stream whose end is not in sight: nothing but N ends its windows, so their size needs no walk, however long.
bool only_steps_end(const WindowShape& shape, const WindowPosition& at) {
  return shape.batches_per_epoch == unknown_length && at.epoch_length == 0 && !shape.max_micro_steps &&
         !shape.max_iters;
}

/// Micro-steps of the window at `at` where only N ends it.
std::int64_t size_by_steps(const WindowShape& shape, const WindowPosition& at) {
  const std::int64_t steps = compared_steps(shape, at);
  switch (shape.knobs.boundary_compare) {
    case BoundaryCompare::modulo:
      return at.position + (steps - at.counter % steps);
    case BoundaryCompare::at_least:
      return at.position + std::max<std::int64_t>(steps - at.counter, 1);
    case BoundaryCompare::exact:
    case BoundaryCompare::plan:
      return at.counter < steps ? at.position + (steps - at.counter) : at.position;  // past N it never closes
  }
  return at.position;
}

/// How many micro-steps the window that opens at `at` will have: up to its update, or to the end of the run.
std::int64_t size_of_window(const WindowShape& shape, WindowPosition at) {
  std::int64_t dropped = 0;
  if (!find_batch(shape, at, dropped)) return at.position;
  if (only_steps_end(shape, at)) return size_by_steps(shape, at);
  // A run that ends closes every window with it, however far away that is.
  const bool ends = shape.max_micro_steps || (shape.max_epochs && shape.batches_per_epoch != unknown_length);
  const std::int64_t longest = longest_window(shape, at);
  while (const auto micro = advance(shape, at, false, dropped)) {
    if (micro->update) return micro->position + 1;
    if (!ends && at.position > longest) break;  // it will never close
  }
  return at.position;
}

/// N, and in the last iterations before max_iters, which fill no window, as many as they are (K5 run_remainder).
/// `after`: where the window stands after the micro-step.
std::int64_t run_remainder_divisor(const WindowShape& shape, const WindowPosition& after, std::int64_t steps) {
  if (!shape.max_iters || steps <= 1) return steps;
  const std::int64_t remainder = *shape.max_iters % steps;
  return iteration_of(shape, after) > *shape.max_iters - remainder ? remainder : steps;
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

/// Full windows that can be taken at once: the window is at its start, its phase is zero, and neither the epoch's end
/// nor a limit nor a change of N lies within them. Keeps one window of distance, so that every special case is walked.
std::int64_t skippable_windows(const WindowShape& shape, const WindowPosition& at) {
  if (at.steps < 1 || at.steps != scheduled_steps(shape, at) || at.position != 0 || at.counter % at.steps != 0 ||
      at.schedule_calls != 0 || shape.knobs.micro_bump)
    return 0;
  if (shape.knobs.group_length == GroupLength::by_update || shape.knobs.schedule_clock == ScheduleClock::epoch)
    return 0;
  std::int64_t windows = (length_of_epoch(shape, at) - at.batch) / at.steps - 1;
  for (const LengthChange& change : shape.steps_set)
    if (change.from > at.updates) windows = std::min(windows, change.from - at.updates - 1);
  if (shape.max_updates) windows = std::min(windows, *shape.max_updates - at.updates - 1);
  if (shape.max_micro_steps) windows = std::min(windows, (*shape.max_micro_steps - at.micro_step) / at.steps - 1);
  if (shape.max_iters) windows = std::min(windows, (*shape.max_iters - iteration_of(shape, at)) / at.steps - 1);
  return std::max<std::int64_t>(windows, 0);
}

std::int64_t ticks_of_windows(const WindowShape& shape, const WindowPosition& at, std::int64_t windows) {
  switch (shape.knobs.schedule_clock) {
    case ScheduleClock::every_nth_call:
      return windows;
    case ScheduleClock::update:
      return guarded_ticks(shape, at, windows);
    case ScheduleClock::update_times_world:
      return guarded_ticks(shape, at, windows * shape.world);
    default:
      return windows * at.steps;
  }
}

std::int64_t skip_windows(const WindowShape& shape, WindowPosition& at, std::int64_t at_most) {
  const std::int64_t windows = std::min(skippable_windows(shape, at), at_most);
  if (windows <= 0) return 0;
  const std::int64_t ticks = ticks_of_windows(shape, at, windows);
  at.micro_step += windows * at.steps;
  at.batch += windows * at.steps;
  at.updates += windows;
  if (counts_modulo(shape)) at.counter += windows * at.steps;
  at.schedule_position += ticks;
  at.guard_count += ticks;
  return windows;
}

WindowTotals walk(const WindowShape& shape) {
  WindowTotals totals;
  WindowPosition at;
  std::int64_t last_epoch = -1;
  while (const auto micro = advance(shape, at, false, totals.dropped_batches)) {
    last_epoch = micro->epoch;
    const bool endless = !shape.max_epochs && !shape.max_micro_steps && at.position > longest_window(shape, at);
    if (endless) break;
    if (micro->update) skip_windows(shape, at, std::numeric_limits<std::int64_t>::max());
  }
  totals.micro_steps = at.micro_step;
  totals.updates = at.updates;
  totals.epochs_started = last_epoch + 1;
  totals.schedule_ticks = at.schedule_position;
  totals.left_over_micro_steps = at.position;
  return totals;
}

/// The shape with what a plan needs and a caller may leave out: lengths of at least one, and mmengine's max_counts,
/// which is the whole run.
WindowShape resolved(WindowShape shape) {
  shape.steps = std::max<std::int64_t>(shape.steps, 1);
  for (auto* changes : {&shape.length_schedule, &shape.steps_set})
    for (LengthChange& change : *changes) change.steps = std::max<std::int64_t>(change.steps, 1);
  const bool limited =
      shape.max_updates || shape.max_micro_steps || (shape.max_epochs && shape.batches_per_epoch != unknown_length);
  if (shape.knobs.normalizer == Normalizer::run_remainder && !shape.max_iters && limited)
    shape.max_iters = walk(shape).micro_steps;
  return shape;
}

}  // namespace

std::optional<double> Division::number() const {
  return counts() ? std::nullopt : std::optional(value);
}

std::string_view to_string(BoundaryReason reason) {
  switch (reason) {
    case BoundaryReason::none:
      return "";
    case BoundaryReason::full:
      return "full";
    case BoundaryReason::epoch_end:
      return "epoch_end";
    case BoundaryReason::run_end:
      return "run_end";
    case BoundaryReason::requested:
      return "requested";
  }
  return "";
}

std::string_view to_string(StepOutcome outcome) {
  switch (outcome) {
    case StepOutcome::updated:
      return "updated";
    case StepOutcome::skipped_overflow:
      return "skipped_overflow";
    case StepOutcome::skipped_empty:
      return "skipped_empty";
    case StepOutcome::accumulated:
      return "accumulated";
  }
  return "";
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

AccumulationWindow::AccumulationWindow(WindowShape shape) : shape_(resolved(std::move(shape))) {}

std::optional<MicroPlan> AccumulationWindow::move(bool planned) {
  const WindowPosition before = at_;
  std::int64_t dropped = 0;
  auto micro = planned ? advance(shape_, at_, requested_, dropped) : begin(shape_, at_, requested_, dropped);
  if (!micro) return std::nullopt;
  requested_ = false;
  held_ = false;
  epoch_ends_ = micro->epoch_ends;
  if (micro->position == 0) window_size_ = size_of_window(shape_, before);
  if (micro->reason == BoundaryReason::requested) window_size_ = micro->position + 1;
  micro->window_size = std::max(window_size_, micro->position + 1);
  micro->division = division_of(shape_, at_, *micro);
  last_ticks_ = micro->schedule_ticks;
  micro->schedule_position = at_.schedule_position;
  return micro;
}

std::optional<MicroPlan> AccumulationWindow::next() {
  return move(true);
}

std::optional<MicroPlan> AccumulationWindow::peek() const {
  AccumulationWindow copy = *this;
  return copy.next();
}

bool AccumulationWindow::settle() {
  std::int64_t dropped = 0;
  return find_batch(shape_, at_, dropped);
}

void AccumulationWindow::announce_end(std::int64_t remaining) {
  if (shape_.batches_per_epoch != unknown_length || at_.batch + remaining <= 0) return;
  at_.epoch_length = at_.batch + std::max<std::int64_t>(remaining, 0);
  if (at_.position > 0) window_size_ = size_of_window(shape_, at_);
}

MicroPlan AccumulationWindow::count() {
  auto micro = move(false);
  if (!micro) throw std::logic_error("AccumulationWindow: a micro-step was counted after the end of the run");
  // A modulo counter runs on whether anybody steps or not, and a flushed epoch is over; the others wait for the step.
  const bool waits = micro->reason == BoundaryReason::full && !counts_modulo(shape_);
  if (micro->update && !waits) close_window(shape_, at_, *micro);
  return *micro;
}

// A boundary that was taken is told from one that is due by the N of the window, which is 0 until the next one opens:
// the schedule, which is called after the step, still has to know that this micro-step was one.
bool AccumulationWindow::boundary_due() const {
  return at_.at_boundary && (counts_modulo(shape_) || at_.steps > 0);
}

bool AccumulationWindow::take_boundary() {
  if (!boundary_due()) return false;
  if (at_.position > 0) {
    MicroPlan micro;
    micro.reason = BoundaryReason::full;
    close_window(shape_, at_, micro);
  }
  if (!counts_modulo(shape_)) at_.steps = 0;
  return true;
}

std::int64_t AccumulationWindow::call_schedule() {
  if (held_ && follows_updates(shape_.knobs.schedule_clock)) return 0;
  // N is that of the window which the micro-step belongs to, also after its boundary was passed.
  WindowPosition counted = at_;
  if (at_.at_boundary && at_.position == 0 && counted.updates > 0) --counted.updates;
  return move_schedule(shape_, at_, epoch_ends_, scheduled_steps(shape_, counted));
}

std::int64_t AccumulationWindow::call_schedule(FollowingSchedule& schedule, bool skipped) const {
  AccumulationWindow own = *this;
  own.shape_.schedule_total = schedule.total;
  own.at_.guard_count = schedule.guard_count;
  own.report(skipped ? StepOutcome::skipped_overflow : StepOutcome::updated);
  const std::int64_t ticks = own.call_schedule();
  schedule.position += ticks;
  schedule.guard_count = own.at_.guard_count;
  return ticks;
}

std::int64_t AccumulationWindow::skip_full_windows(std::int64_t at_most) {
  return requested_ ? 0 : skip_windows(shape_, at_, at_most);
}

void AccumulationWindow::report(StepOutcome outcome) {
  held_ = outcome != StepOutcome::updated && shape_.knobs.overflow == OverflowPolicy::hold;
  if (!held_) return;
  const ScheduleClock clock = shape_.knobs.schedule_clock;
  if (!follows_updates(clock) && clock != ScheduleClock::every_nth_call) return;
  at_.schedule_position -= last_ticks_;
  at_.guard_count -= last_ticks_;
  last_ticks_ = 0;
}

void AccumulationWindow::request_boundary() {
  requested_ = at_.position > 0;
}

void AccumulationWindow::set_steps(std::int64_t steps) {
  at_.next_steps = std::max<std::int64_t>(steps, 1);
  if (at_.position == 0 || shape_.knobs.boundary_compare == BoundaryCompare::plan) return;
  WindowPosition rest = at_;
  window_size_ = size_of_window(shape_, rest);
}

void AccumulationWindow::change_steps(std::int64_t steps) {
  shape_.set_steps_after(at_.updates, std::max<std::int64_t>(steps, 1));
  set_steps(steps);
}

std::optional<std::int64_t> AccumulationWindow::steps_set_here() const {
  return at_.position == 0 ? steps_set_after(shape_, at_.updates) : std::nullopt;
}

void AccumulationWindow::seek(std::int64_t micro_step, std::optional<std::int64_t> schedule_position) {
  at_ = {};
  requested_ = held_ = false;
  do {
    if (at_.steps > 0) skip_windows(shape_, at_, (micro_step - at_.micro_step) / at_.steps);
  } while (at_.micro_step < micro_step && next());
  if (!schedule_position) return;
  at_.guard_count -= at_.schedule_position - *schedule_position;
  at_.schedule_position = *schedule_position;
}

void AccumulationWindow::restore(const WindowPosition& position) {
  at_ = position;
  requested_ = held_ = epoch_ends_ = false;
  last_ticks_ = 0;
  window_size_ = at_.position > 0 ? size_of_window(shape_, at_) : 0;
}

void AccumulationWindow::restore_counts(const WindowPosition& position) {
  WindowPosition at = position;
  at.schedule_position = at_.schedule_position;
  at.schedule_calls = at_.schedule_calls;
  at.guard_count = at_.guard_count;
  restore(at);
}

void AccumulationWindow::restore_schedule(const WindowPosition& position) {
  WindowPosition at = at_;
  at.schedule_position = position.schedule_position;
  at.schedule_calls = position.schedule_calls;
  at.guard_count = position.guard_count;
  restore(at);
}

void AccumulationWindow::lose_open_window(bool recount) {
  WindowPosition at = at_;
  at.position = 0;
  if (recount) at.counter = 0;
  restore(at);
}

void AccumulationWindow::forget_schedule_calls() {
  at_.schedule_calls = 0;
}

void AccumulationWindow::force_boundary(bool due) {
  WindowPosition at = at_;
  at.at_boundary = due;
  restore(at);
}

void AccumulationWindow::resume_at(std::int64_t micro_step) {
  WindowPosition at;
  at.micro_step = at.batch = at.counter = at.schedule_position = micro_step;
  at.updates = micro_step / shape_.steps;
  at.at_boundary = micro_step % shape_.steps == 0 || micro_step == shape_.max_iters;
  restore(at);
}

WindowTotals total_windows(const WindowShape& shape) {
  return walk(resolved(shape));
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

std::vector<MicroPlan> window_at_epoch_end(const WindowShape& shape, std::int64_t most_walked) {
  AccumulationWindow walk(shape);
  std::vector<MicroPlan> window;
  for (std::int64_t walked = 0; walked < most_walked; ++walked) {
    const auto micro = walk.next();
    if (!micro) break;
    if (micro->position == 0) window.clear();
    window.push_back(*micro);
    if (micro->epoch_ends) return window;
    if (micro->update) walk.skip_full_windows(std::numeric_limits<std::int64_t>::max());
  }
  return {};
}

std::int64_t largest_steps(const WindowShape& shape) {
  std::int64_t steps = shape.steps;
  for (const auto* changes : {&shape.length_schedule, &shape.steps_set})
    for (const LengthChange& change : *changes) steps = std::max(steps, change.steps);
  return steps;
}

}  // namespace accrue
