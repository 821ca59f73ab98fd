// SPDX-License-Identifier: Apache-2.0
// A model of the planner: slow, obvious, and written from what the systems do rather than from the planner; random
// shapes to compare the two on, and words for what differs.
#pragma once

#include <QByteArray>
#include <algorithm>
#include <random>
#include <sstream>
#include <utility>

#include "accrue/run/fields/choice_names.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue::window_model {

struct ModelRun {
  std::vector<MicroPlan> plans;
  WindowTotals totals;
};

inline std::int64_t samples_of_batch(const WindowShape& shape, std::int64_t batch) {
  return batch == shape.batches_per_epoch - 1 ? shape.samples.last : shape.samples.each;
}

/// `samples`: those of the windows before.
inline std::int64_t length_at(const WindowShape& shape, std::int64_t epoch, std::int64_t update, std::int64_t samples) {
  if (const auto& ramp = shape.rampup) {
    const std::int64_t rises = (ramp->full - ramp->first) / ramp->increment;
    std::int64_t batch = ramp->first;
    for (std::int64_t rise = 1; rise <= rises; ++rise)  // random_shape() has ramps that divide
      if (samples >= ramp->samples / rises * rise) batch += ramp->increment;
    return batch / shape.samples.each;
  }
  const bool by_update = shape.knobs.group_length == GroupLength::by_update;
  if (!by_update && shape.knobs.group_length != GroupLength::by_epoch) return shape.steps;
  std::int64_t steps = shape.steps;
  for (const LengthChange& change : shape.length_schedule)
    if ((by_update ? update : epoch) >= change.from) steps = change.steps;
  return steps;
}

inline bool is_full(BoundaryCompare compare, std::int64_t counter, std::int64_t steps) {
  switch (compare) {
    case BoundaryCompare::exact:
      return counter == steps;
    case BoundaryCompare::at_least:
      return counter >= steps;
    case BoundaryCompare::modulo:
      return counter % steps == 0;
    case BoundaryCompare::plan:
      return counter == steps;
  }
  return false;
}

/// State of a walk between micro-steps.
struct Walk {
  std::int64_t updates = 0;
  std::int64_t position = 0;
  std::int64_t counter = 0;
  std::int64_t steps = 1;
  std::int64_t samples = 0;  ///< of the windows that are over
  std::int64_t open = 0;     ///< of the open one
};

struct Course {
  std::vector<MicroPlan> lines;
  std::vector<std::int64_t> dropped;  ///< of each epoch
};

inline bool drops(const WindowShape& shape) {
  return shape.knobs.tail == EpochTail::drop_stop || shape.knobs.tail == EpochTail::drop_drain;
}

/// One epoch with no limit but its own end.
inline void walk_epoch(const WindowShape& shape, std::int64_t epoch, Walk& walk, Course& course) {
  const std::int64_t length = shape.batches_per_epoch;
  const std::size_t before = course.lines.size();
  course.dropped.push_back(0);
  for (std::int64_t batch = 0;; ++batch) {
    // A plan keeps the length that a window began with; the counters of the others are compared with N as it is now.
    const bool kept = shape.knobs.boundary_compare == BoundaryCompare::plan && walk.position > 0;
    if (!kept) walk.steps = length_at(shape, epoch, walk.updates, walk.samples);
    if (drops(shape) && walk.position == 0 && length - batch < walk.steps) {
      course.dropped.back() = length - batch;
      break;
    }
    const bool padding = shape.knobs.tail == EpochTail::pad_repeat && walk.position > 0 && length > 0;
    if (batch >= length && !padding) break;
    MicroPlan line;
    line.steps = walk.steps;
    line.micro_step = static_cast<std::int64_t>(course.lines.size()) + 1;
    line.epoch = epoch;
    line.batch = batch % length;
    line.window = walk.updates;
    line.position = walk.position;
    line.samples_before = walk.samples;
    walk.open += samples_of_batch(shape, line.batch);
    ++walk.position;
    ++walk.counter;
    if (is_full(shape.knobs.boundary_compare, walk.counter, walk.steps))
      line.reason = BoundaryReason::full;
    else if (shape.max_iters == line.micro_step && shape.knobs.run_tail == RunTail::flush)
      line.reason = BoundaryReason::run_end;
    else if (batch == length - 1 && shape.knobs.tail == EpochTail::flush)
      line.reason = BoundaryReason::epoch_end;
    line.update = line.reason != BoundaryReason::none;
    if (line.update) {
      ++walk.updates;
      walk.position = 0;
      walk.samples += std::exchange(walk.open, 0);
      // A full window sets the counter back, unless it is one that is taken modulo N; a flushed one, if K4 says so.
      const bool counts_on = shape.knobs.boundary_compare == BoundaryCompare::modulo;
      if (line.reason == BoundaryReason::full && !counts_on) walk.counter = 0;
      // At the end of an epoch a window is flushed even if it happens to be full.
      const bool at_end = batch == length - 1 && shape.knobs.tail == EpochTail::flush;
      const bool flushed = at_end || line.reason != BoundaryReason::full;
      if (flushed && shape.knobs.counter_reset != CounterReset::never) walk.counter = 0;
    }
    course.lines.push_back(line);
  }
  if (course.lines.size() > before) course.lines.back().epoch_ends = true;
  if (course.lines.size() > before) course.lines.back().dropped_after = course.dropped.back();
  if (shape.knobs.counter_reset == CounterReset::epoch_end) walk.counter = 0;
}

/// As many epochs as the limits can ask for, and then the cut.
inline Course walk_run(const WindowShape& shape) {
  Course course;
  Walk walk;
  const bool by_epoch = shape.knobs.group_length == GroupLength::by_epoch;
  const std::int64_t last_row = by_epoch ? shape.length_schedule.back().from : 0;
  std::size_t end = 0;
  for (std::int64_t epoch = 0; !shape.max_epochs || epoch < *shape.max_epochs; ++epoch) {
    const std::size_t before = course.lines.size();
    walk_epoch(shape, epoch, walk, course);
    for (; end < course.lines.size(); ++end) {
      const MicroPlan& plan = course.lines[end];
      const bool enough_updates = shape.max_updates && plan.window + (plan.update ? 1 : 0) >= *shape.max_updates;
      const bool enough_micro_steps = shape.max_micro_steps && plan.micro_step >= *shape.max_micro_steps;
      if (!enough_updates && !enough_micro_steps) continue;
      course.lines.resize(end + 1);
      course.dropped.back() = 0;  // the run stops before it comes to what this epoch would drop
      return course;
    }
    if (course.lines.size() == before && !shape.max_epochs && epoch >= last_row) break;  // nothing will ever come
  }
  return course;
}

/// Fills in values of a window's beginning that only its end determines.
inline void fill_sizes(Course& course) {
  for (std::size_t begin = 0; begin < course.lines.size();) {
    std::size_t end = begin;
    while (end < course.lines.size() && course.lines[end].window == course.lines[begin].window) ++end;
    for (std::size_t i = begin; i < end; ++i) course.lines[i].window_size = static_cast<std::int64_t>(end - begin);
    begin = end;
  }
}

/// The number that divides, wherever it does; a count of items or samples is none.
inline double divisor_of(const WindowShape& shape, const MicroPlan& line, std::int64_t run) {
  switch (shape.knobs.normalizer) {
    case Normalizer::none:
      return 1.0;
    case Normalizer::steps:
      return static_cast<double>(line.steps);
    case Normalizer::true_size:
      return static_cast<double>(line.window_size);
    case Normalizer::run_remainder: {
      const std::int64_t max = shape.max_iters.value_or(run);
      const std::int64_t remainder = max % line.steps;
      if (remainder == 0 || line.micro_step <= max - remainder) return static_cast<double>(line.steps);
      return static_cast<double>(remainder);
    }
    case Normalizer::samples:
    case Normalizer::tokens:
      break;
  }
  return 1.0;
}

inline Division division_of(const WindowShape& shape, const MicroPlan& line, std::int64_t run) {
  Division division{Division::By::number, divisor_of(shape, line, run), shape.knobs.normalize_when};
  if (shape.knobs.normalizer == Normalizer::none) division.by = Division::By::none;
  if (shape.knobs.normalizer == Normalizer::samples) division.by = Division::By::samples;
  if (shape.knobs.normalizer == Normalizer::tokens) division.by = Division::By::items;
  // Ranks that add up their gradients have divided them by a count of their own before.
  const bool counted = division.by == Division::By::samples || division.by == Division::By::items;
  const bool own = counted && shape.knobs.normalizer_scope == NormalizerScope::rank;
  if (own && shape.world > 1 && shape.knobs.reduce_when != ReduceWhen::never) division.when = NormalizeWhen::eager;
  return division;
}

/// A learning-rate schedule with PyTorch's own count of its steps, which is 1 before the first.
struct ModelSchedule {
  std::int64_t position = 0;
  std::int64_t step_count = 1;
  std::int64_t calls = 0;
  std::int64_t open = 0;  ///< samples of the open window

  std::int64_t after(const WindowShape& shape, const MicroPlan& line, bool skipped) {
    const AccumulationKnobs& knobs = shape.knobs;
    const bool steps = line.update && !(skipped && knobs.overflow == OverflowPolicy::hold);
    const std::int64_t before = position;
    open += samples_of_batch(shape, line.batch);
    const std::int64_t samples = line.update ? std::exchange(open, 0) : 0;
    if (shape.schedule_in_samples) {
      position += skipped ? 0 : samples;
      return position - before;
    }
    switch (knobs.schedule_clock) {
      case ScheduleClock::update:
        position += steps ? 1 : 0;
        break;
      case ScheduleClock::update_times_world:
        if (!line.update && knobs.micro_bump) ++step_count;
        for (std::int64_t rank = 0; steps && rank < shape.world; ++rank) {
          if (knobs.total_guard && shape.schedule_total && step_count > *shape.schedule_total) continue;
          ++step_count;
          ++position;
        }
        break;
      case ScheduleClock::micro_step:
      case ScheduleClock::external:
        ++position;
        break;
      case ScheduleClock::epoch:
        position += line.epoch_ends ? 1 : 0;
        break;
      case ScheduleClock::every_nth_call:
        if (++calls >= line.steps) {
          calls = 0;
          ++position;
        }
        break;
    }
    return position - before;
  }
};

inline ModelRun model_of(const WindowShape& shape) {
  Course course = walk_run(shape);
  if (!course.lines.empty() && shape.knobs.run_tail == RunTail::flush && !shape.max_iters) {
    MicroPlan& last = course.lines.back();
    if (!last.update) last.reason = BoundaryReason::run_end;
    last.update = true;
  }
  fill_sizes(course);
  ModelRun run;
  ModelSchedule schedule;
  std::int64_t open = 0;
  for (MicroPlan& line : course.lines) {
    line.division = division_of(shape, line, static_cast<std::int64_t>(course.lines.size()));
    const ReduceWhen reduce = shape.knobs.reduce_when;
    line.sync = reduce == ReduceWhen::every_micro_step || (reduce == ReduceWhen::boundary && line.update);
    line.schedule_ticks = schedule.after(shape, line, false);
    line.schedule_position = schedule.position;
    run.plans.push_back(line);
    run.totals.updates += line.update ? 1 : 0;
    open += samples_of_batch(shape, line.batch);
    if (line.update) run.totals.samples += std::exchange(open, 0);
  }
  run.totals.micro_steps = static_cast<std::int64_t>(run.plans.size());
  run.totals.schedule_ticks = schedule.position;
  for (const std::int64_t dropped : course.dropped) run.totals.dropped_batches += dropped;
  if (run.plans.empty()) return run;
  run.totals.epochs_started = run.plans.back().epoch + 1;
  if (!run.plans.back().update) run.totals.left_over_micro_steps = run.plans.back().position + 1;
  return run;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t from(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return from(1, 100) <= percent; }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[from(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

inline AccumulationSpec random_dialect(Dice& dice) {
  AccumulationSpec spec;
  spec.dialect =
      dice.one_of({Dialect::accrue, Dialect::llm, Dialect::colossalai, Dialect::accelerate, Dialect::mmengine});
  if (spec.dialect != Dialect::accelerate) return spec;
  if (dice.chance(40)) spec.sync_with_dataloader = dice.chance(30);
  if (dice.chance(20)) spec.sync_each_batch = dice.chance(70);
  if (dice.chance(20)) spec.split_batches = dice.chance(70);
  if (dice.chance(20)) spec.step_scheduler_with_optimizer = dice.chance(30);
  if (dice.chance(20)) {
    spec.adjust_scheduler = dice.chance(50);
    if (dice.chance(50)) spec.replay = {"adjust_scheduler"};
  }
  return spec;
}

inline void turn_knobs(Dice& dice, AccumulationKnobs& knobs) {
  knobs.tail = dice.one_of(
      {EpochTail::carry, EpochTail::drop_stop, EpochTail::drop_drain, EpochTail::flush, EpochTail::pad_repeat});
  knobs.run_tail = dice.one_of({RunTail::discard, RunTail::flush});
  knobs.counter_reset = dice.one_of({CounterReset::never, CounterReset::epoch_end, CounterReset::at_flush});
  knobs.normalizer = dice.one_of({Normalizer::none, Normalizer::steps, Normalizer::true_size, Normalizer::run_remainder,
                                  Normalizer::samples, Normalizer::tokens});
  knobs.normalize_when = dice.chance(85) ? NormalizeWhen::eager : NormalizeWhen::deferred;
  knobs.boundary_compare =
      dice.one_of({BoundaryCompare::exact, BoundaryCompare::at_least, BoundaryCompare::modulo, BoundaryCompare::plan});
  knobs.reduce_when = dice.one_of({ReduceWhen::boundary, ReduceWhen::every_micro_step, ReduceWhen::never});
  knobs.overflow = dice.one_of({OverflowPolicy::hold, OverflowPolicy::advance});
  knobs.schedule_clock =
      dice.one_of({ScheduleClock::update, ScheduleClock::update_times_world, ScheduleClock::micro_step,
                   ScheduleClock::epoch, ScheduleClock::every_nth_call, ScheduleClock::external});
  knobs.total_guard = knobs.schedule_clock == ScheduleClock::update_times_world && dice.chance(70);
  knobs.micro_bump = knobs.schedule_clock == ScheduleClock::update_times_world && dice.chance(40);
}

inline void limit(Dice& dice, WindowShape& shape) {
  if (dice.chance(75)) shape.max_epochs = dice.from(1, 4);
  if (dice.chance(25)) shape.max_updates = dice.from(1, 20);
  if (dice.chance(25)) shape.max_micro_steps = dice.from(1, 80);
  if (!shape.max_epochs && !shape.max_updates && !shape.max_micro_steps) shape.max_epochs = dice.from(1, 4);
}

inline void change_lengths(Dice& dice, WindowShape& shape) {
  shape.knobs.group_length = dice.one_of({GroupLength::by_update, GroupLength::by_epoch});
  std::int64_t from = dice.from(0, 2);
  for (std::int64_t rows = dice.from(1, 3); rows > 0; --rows, from += dice.from(1, 3))
    shape.length_schedule.push_back({from, dice.from(1, 12)});
}

/// Samples in the batches, which a schedule may count and windows may grow by.
inline void count_samples(Dice& dice, WindowShape& shape) {
  shape.samples.each = dice.from(1, 8);
  shape.samples.last = dice.from(1, shape.samples.each);
  shape.schedule_in_samples = shape.knobs.schedule_clock == ScheduleClock::update && dice.chance(70);
  const AccumulationKnobs& knobs = shape.knobs;
  const bool can_ramp = knobs.group_length == GroupLength::fixed && knobs.normalizer != Normalizer::run_remainder &&
                        knobs.boundary_compare != BoundaryCompare::modulo && shape.steps > 1;
  if (!can_ramp || dice.chance(50)) return;
  const std::int64_t rises = dice.from(1, shape.steps - 1);
  shape.steps = (shape.steps - 1) / rises * rises + 1;
  shape.rampup = RampUp{shape.samples.each, (shape.steps - 1) / rises * shape.samples.each, rises * dice.from(1, 60),
                        shape.steps * shape.samples.each};
}

inline WindowShape random_shape(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15ULL + 1);
  WindowShape shape;
  shape.knobs = resolve_knobs(random_dialect(dice));
  const bool preset = dice.chance(40);
  if (!preset) turn_knobs(dice, shape.knobs);
  shape.steps = dice.from(1, 12);
  shape.batches_per_epoch = dice.chance(5) ? 0 : dice.from(1, 40);
  shape.world = dice.from(1, 4);
  limit(dice, shape);
  if (shape.knobs.total_guard && dice.chance(80)) shape.schedule_total = dice.from(1, 30);
  if (!preset && dice.chance(25)) change_lengths(dice, shape);
  // A counter that every epoch sets back before it is full: only another limit ends such a run.
  if (shape.knobs.counter_reset == CounterReset::epoch_end && !shape.max_epochs) shape.max_epochs = dice.from(1, 4);
  // MMEngine knows the number of its micro-steps in advance; with too many it never reaches the run's last window.
  const bool tells = shape.knobs.normalizer == Normalizer::run_remainder && shape.knobs.tail == EpochTail::carry;
  if (tells && dice.chance(40))
    shape.max_iters =
        std::max<std::int64_t>(1, std::ssize(model_of(shape).plans)) + (dice.chance(50) ? dice.from(0, 30) : 0);
  if (dice.chance(50)) count_samples(dice, shape);
  return shape;
}

template <typename T>
std::string number(const std::optional<T>& value) {
  std::ostringstream text;
  if (value)
    text << *value;
  else
    text << "-";
  return text.str();
}

inline std::string in_words(const MicroPlan& plan) {
  std::ostringstream text;
  text << "m " << plan.micro_step << " epoch " << plan.epoch << " batch " << plan.batch << " window " << plan.window
       << " position " << plan.position << "/" << plan.window_size << " N " << plan.steps << " by "
       << int(plan.division.by) << " " << plan.division.value << " " << to_name(plan.division.when)
       << (plan.sync ? " sync" : "") << (plan.update ? " update" : "") << " " << to_string(plan.reason) << " ticks "
       << plan.schedule_ticks << " -> " << plan.schedule_position << (plan.epoch_ends ? " |" : "") << " dropped "
       << plan.dropped_after << " after " << plan.samples_before << " samples";
  return text.str();
}

inline std::string in_words(const WindowTotals& totals) {
  std::ostringstream text;
  text << totals.micro_steps << " micro-steps, " << totals.updates << " updates, " << totals.epochs_started
       << " epochs, " << totals.schedule_ticks << " ticks, " << totals.dropped_batches << " dropped, "
       << totals.left_over_micro_steps << " left over, " << totals.samples << " samples";
  return text.str();
}

inline std::string in_words(const WindowShape& shape) {
  const AccumulationKnobs& knobs = shape.knobs;
  std::ostringstream text;
  text << "L " << shape.batches_per_epoch << " N " << shape.steps << " W " << shape.world << " epochs "
       << number(shape.max_epochs) << " updates " << number(shape.max_updates) << " micro "
       << number(shape.max_micro_steps) << " total " << number(shape.schedule_total) << " max_iters "
       << number(shape.max_iters) << " " << to_name(knobs.group_length);
  for (const LengthChange& change : shape.length_schedule) text << " [" << change.from << ", " << change.steps << "]";
  text << " tail " << to_name(knobs.tail) << " run_tail " << to_name(knobs.run_tail) << " reset "
       << to_name(knobs.counter_reset) << " by " << to_name(knobs.normalizer) << " " << to_name(knobs.normalize_when)
       << " compare " << to_name(knobs.boundary_compare) << " reduce " << to_name(knobs.reduce_when) << " clock "
       << to_name(knobs.schedule_clock) << " " << to_name(knobs.overflow) << (knobs.total_guard ? " guard" : "")
       << (knobs.micro_bump ? " bump" : "") << " samples " << shape.samples.each << ", " << shape.samples.last
       << (shape.schedule_in_samples ? " in schedule" : "");
  if (const auto& ramp = shape.rampup)
    text << " ramp " << ramp->first << " + " << ramp->increment << " in " << ramp->samples << " to " << ramp->full;
  return text.str();
}

/// Empty where both say the same.
inline std::string difference(const WindowShape& shape, const std::optional<MicroPlan>& code,
                              const std::optional<MicroPlan>& model) {
  if (code == model) return {};
  return in_words(shape) + "\n  planner: " + (code ? in_words(*code) : "over") +
         "\n  model:   " + (model ? in_words(*model) : "over");
}

inline std::optional<MicroPlan> line_of(const ModelRun& run, std::size_t index) {
  return index < run.plans.size() ? std::optional(run.plans[index]) : std::nullopt;
}

/// Fails with the first difference and how many shapes differ at all.
class Differences {
 public:
  void add(const std::string& wrong) {
    if (wrong.empty()) return;
    if (++count_ <= 3) text_ += wrong + "\n";
  }
  int count() const { return count_; }
  QByteArray report() const { return QByteArray::number(count_) + " shapes differ; the first:\n" + text_.c_str(); }

 private:
  int count_ = 0;
  std::string text_;
};

}  // namespace accrue::window_model
