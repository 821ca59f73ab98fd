// SPDX-License-Identifier: Apache-2.0
// The planner against a model of it: slow, obvious, and written from what the systems do rather than from the planner.
// The model writes a whole run down at once, as a list: first every micro-step of every epoch, then the cut at the
// run's limits, then what can only be known backwards (sizes of windows, the end of the run). The planner answers one
// micro-step at a time, may be asked in the order of somebody else's loop, sought, restored and skipped ahead. All of
// them have to say the same, on 10,000 random shapes.
#include <QtTest>

#include <algorithm>
#include <ctime>
#include <random>
#include <sstream>

#include "accrue/run/accumulation_window.h"
#include "accrue/run/choice_names.h"
#include "accrue/run/dialect_comparison.h"
#include "window_transition.h"
#include "window_walk.h"

using namespace accrue;

namespace {

constexpr int shapes_compared = 10'000;

// ---------------------------------------------------------------------------------------------------- the model

struct ModelRun {
  std::vector<MicroPlan> plans;
  WindowTotals totals;
};

std::int64_t length_at(const WindowShape& shape, std::int64_t epoch, std::int64_t update) {
  const bool by_update = shape.knobs.group_length == GroupLength::by_update;
  if (!by_update && shape.knobs.group_length != GroupLength::by_epoch) return shape.steps;
  std::int64_t steps = shape.steps;
  for (const LengthChange& change : shape.length_schedule)
    if ((by_update ? update : epoch) >= change.from) steps = change.steps;
  return steps;
}

bool is_full(BoundaryCompare compare, std::int64_t counter, std::int64_t steps) {
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

/// What a walk carries from one micro-step to the next.
struct Walk {
  std::int64_t updates = 0;
  std::int64_t position = 0;
  std::int64_t counter = 0;
  std::int64_t steps = 1;
};

struct Course {
  std::vector<MicroPlan> lines;
  std::vector<std::int64_t> dropped;  ///< of each epoch
};

bool drops(const WindowShape& shape) {
  return shape.knobs.tail == EpochTail::drop_stop || shape.knobs.tail == EpochTail::drop_drain;
}

/// One epoch with no limit but its own end.
void walk_epoch(const WindowShape& shape, std::int64_t epoch, Walk& walk, Course& course) {
  const std::int64_t length = shape.batches_per_epoch;
  const std::size_t before = course.lines.size();
  course.dropped.push_back(0);
  for (std::int64_t batch = 0;; ++batch) {
    // A plan keeps the length that a window began with; the counters of the others are compared with N as it is now.
    const bool kept = shape.knobs.boundary_compare == BoundaryCompare::plan && walk.position > 0;
    if (!kept) walk.steps = length_at(shape, epoch, walk.updates);
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
      // A full window sets the counter back, unless it is one that is taken modulo N; a flushed one, if K4 says so.
      const bool counts_on = shape.knobs.boundary_compare == BoundaryCompare::modulo;
      if (line.reason == BoundaryReason::full && !counts_on) walk.counter = 0;
      // At the end of an epoch a window is flushed even where it happens to be full.
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
Course walk_run(const WindowShape& shape) {
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

/// What a window's end tells about its beginning.
void fill_sizes(Course& course) {
  for (std::size_t begin = 0; begin < course.lines.size();) {
    std::size_t end = begin;
    while (end < course.lines.size() && course.lines[end].window == course.lines[begin].window) ++end;
    for (std::size_t i = begin; i < end; ++i) course.lines[i].window_size = static_cast<std::int64_t>(end - begin);
    begin = end;
  }
}

/// The number that divides, wherever it does; a count of items or samples is none.
double divisor_of(const WindowShape& shape, const MicroPlan& line, std::int64_t run) {
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

Division division_of(const WindowShape& shape, const MicroPlan& line, std::int64_t run) {
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

  std::int64_t after(const WindowShape& shape, const MicroPlan& line, bool skipped) {
    const AccumulationKnobs& knobs = shape.knobs;
    const bool steps = line.update && !(skipped && knobs.overflow == OverflowPolicy::hold);
    const std::int64_t before = position;
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

ModelRun model_of(const WindowShape& shape) {
  Course course = walk_run(shape);
  if (!course.lines.empty() && shape.knobs.run_tail == RunTail::flush && !shape.max_iters) {
    MicroPlan& last = course.lines.back();
    if (!last.update) last.reason = BoundaryReason::run_end;
    last.update = true;
  }
  fill_sizes(course);
  ModelRun run;
  ModelSchedule schedule;
  for (MicroPlan& line : course.lines) {
    line.division = division_of(shape, line, static_cast<std::int64_t>(course.lines.size()));
    const ReduceWhen reduce = shape.knobs.reduce_when;
    line.sync = reduce == ReduceWhen::every_micro_step || (reduce == ReduceWhen::boundary && line.update);
    line.schedule_ticks = schedule.after(shape, line, false);
    line.schedule_position = schedule.position;
    run.plans.push_back(line);
    run.totals.updates += line.update ? 1 : 0;
  }
  run.totals.micro_steps = static_cast<std::int64_t>(run.plans.size());
  run.totals.schedule_ticks = schedule.position;
  for (const std::int64_t dropped : course.dropped) run.totals.dropped_batches += dropped;
  if (run.plans.empty()) return run;
  run.totals.epochs_started = run.plans.back().epoch + 1;
  if (!run.plans.back().update) run.totals.left_over_micro_steps = run.plans.back().position + 1;
  return run;
}

// ---------------------------------------------------------------------------------------------------- random shapes

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

AccumulationSpec random_dialect(Dice& dice) {
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

void turn_knobs(Dice& dice, AccumulationKnobs& knobs) {
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

void limit(Dice& dice, WindowShape& shape) {
  if (dice.chance(75)) shape.max_epochs = dice.from(1, 4);
  if (dice.chance(25)) shape.max_updates = dice.from(1, 20);
  if (dice.chance(25)) shape.max_micro_steps = dice.from(1, 80);
  if (!shape.max_epochs && !shape.max_updates && !shape.max_micro_steps) shape.max_epochs = dice.from(1, 4);
}

void change_lengths(Dice& dice, WindowShape& shape) {
  shape.knobs.group_length = dice.one_of({GroupLength::by_update, GroupLength::by_epoch});
  std::int64_t from = dice.from(0, 2);
  for (std::int64_t rows = dice.from(1, 3); rows > 0; --rows, from += dice.from(1, 3))
    shape.length_schedule.push_back({from, dice.from(1, 12)});
}

WindowShape random_shape(std::uint64_t seed) {
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
  // MMEngine is told how many micro-steps its run has; told too many, it never comes to the run's last window.
  const bool tells = shape.knobs.normalizer == Normalizer::run_remainder && shape.knobs.tail == EpochTail::carry;
  if (tells && dice.chance(40))
    shape.max_iters =
        std::max<std::int64_t>(1, std::ssize(model_of(shape).plans)) + (dice.chance(50) ? dice.from(0, 30) : 0);
  return shape;
}

// ---------------------------------------------------------------------------------------------------- words for
// failures

template <typename T>
std::string number(const std::optional<T>& value) {
  std::ostringstream text;
  if (value)
    text << *value;
  else
    text << "-";
  return text.str();
}

std::string in_words(const MicroPlan& plan) {
  std::ostringstream text;
  text << "m " << plan.micro_step << " epoch " << plan.epoch << " batch " << plan.batch << " window " << plan.window
       << " position " << plan.position << "/" << plan.window_size << " N " << plan.steps << " by "
       << int(plan.division.by) << " " << plan.division.value << " " << to_name(plan.division.when)
       << (plan.sync ? " sync" : "") << (plan.update ? " update" : "") << " " << to_string(plan.reason) << " ticks "
       << plan.schedule_ticks << " -> " << plan.schedule_position << (plan.epoch_ends ? " |" : "") << " dropped "
       << plan.dropped_after;
  return text.str();
}

std::string in_words(const WindowTotals& totals) {
  std::ostringstream text;
  text << totals.micro_steps << " micro-steps, " << totals.updates << " updates, " << totals.epochs_started
       << " epochs, " << totals.schedule_ticks << " ticks, " << totals.dropped_batches << " dropped, "
       << totals.left_over_micro_steps << " left over";
  return text.str();
}

std::string in_words(const WindowShape& shape) {
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
       << (knobs.micro_bump ? " bump" : "");
  return text.str();
}

/// Empty where both say the same.
std::string difference(const WindowShape& shape, const std::optional<MicroPlan>& code,
                       const std::optional<MicroPlan>& model) {
  if (code == model) return {};
  return in_words(shape) + "\n  planner: " + (code ? in_words(*code) : "over") +
         "\n  model:   " + (model ? in_words(*model) : "over");
}

std::optional<MicroPlan> line_of(const ModelRun& run, std::size_t index) {
  return index < run.plans.size() ? std::optional(run.plans[index]) : std::nullopt;
}

/// The first place where the rest of a window's answers leave the model.
std::string compare_rest(const WindowShape& shape, AccumulationWindow& window, const ModelRun& run, std::size_t from) {
  for (std::size_t i = from; i <= run.plans.size(); ++i)
    if (const std::string wrong = difference(shape, window.next(), line_of(run, i)); !wrong.empty()) return wrong;
  return {};
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

}  // namespace

class TestWindowModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_field_of_every_plan();
  void totals();
  void a_loop_that_calls_says_what_the_plan_says();
  void a_stream_says_what_a_known_length_says();
  void goes_on_from_any_micro_step();
  void passes_over_what_repeats_as_if_it_stepped();
  void passes_over_updates_as_if_it_stepped();
  void the_longest_runs_are_counted_at_once();
  void an_overflow_holds_or_advances_the_schedule();
  void a_requested_boundary_ends_the_window();
};

void TestWindowModel::every_field_of_every_plan() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = random_shape(seed);
    const ModelRun run = model_of(shape);
    AccumulationWindow window(shape);
    differences.add(compare_rest(shape, window, run, 0));
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

void TestWindowModel::totals() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = random_shape(seed);
    const WindowTotals code = total_windows(shape);
    const WindowTotals model = model_of(shape).totals;
    if (code != model)
      differences.add(in_words(shape) + "\n  planner: " + in_words(code) + "\n  model:   " + in_words(model));
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

// How early a stream learns that its epoch ends.
enum class Foresight { epoch, group, batch };

/// Tells a window of unknown length what its reader knows before the next micro-step. False when the run is over.
bool foresee(AccumulationWindow& window, const WindowShape& known, Foresight foresight) {
  while (const auto next = window.peek()) {
    const WindowPosition& at = window.position();
    if (at.epoch_length() != 0 && at.epoch() == next->epoch) return true;
    const std::int64_t left = known.batches_per_epoch - next->batch;
    const std::int64_t ahead = length_at(known, next->epoch, next->window);
    const bool sees = foresight == Foresight::epoch || (foresight == Foresight::group && left <= ahead) ||
                      (foresight == Foresight::batch && left <= 1);
    if (!sees) return true;
    window.announce_end(left);  // an epoch that is dropped whole is passed over, and the next one is announced
  }
  return false;
}

/// The same run with an end of the epoch that only its reader knows.
WindowShape as_stream(const WindowShape& known, const ModelRun& run) {
  WindowShape stream = known;
  stream.batches_per_epoch = unknown_length;
  const bool told = known.knobs.normalizer == Normalizer::run_remainder && !known.max_iters;
  if (told && !run.plans.empty()) stream.max_iters = std::ssize(run.plans);
  return stream;
}

/// What a reader with that foresight cannot know before a window ends is taken over from the other side.
MicroPlan without_foresight(MicroPlan plan, const MicroPlan& other, const WindowShape& shape) {
  plan.window_size = other.window_size;
  if (shape.knobs.normalizer == Normalizer::true_size) plan.division = other.division;
  return plan;
}

/// Without a length nobody could say that an N that is to be met, once it was missed, will never be met.
bool can_stream(const WindowShape& shape) {
  const bool meets =
      shape.knobs.boundary_compare == BoundaryCompare::exact || shape.knobs.boundary_compare == BoundaryCompare::plan;
  const bool may_miss = meets && shape.knobs.group_length != GroupLength::fixed;
  return shape.batches_per_epoch > 0 && !may_miss && !model_of(shape).plans.empty();
}

void TestWindowModel::a_loop_that_calls_says_what_the_plan_says() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = random_shape(seed);
    if (!can_stream(shape)) continue;
    // What is dropped has to be known before the last window that is kept.
    const Foresight foresight = drops(shape) ? Foresight::epoch : Foresight::batch;
    const ModelRun run = model_of(shape);
    AccumulationWindow window(as_stream(shape, run));
    std::string wrong;
    for (const MicroPlan& expected : run.plans) {
      if (!foresee(window, shape, foresight)) {
        wrong = difference(shape, std::nullopt, expected);
        break;
      }
      MicroPlan plan = without_foresight(window.count(), expected, shape);
      if (window.boundary_due() != plan.update) wrong += "boundary_due() contradicts the plan\n";
      if (window.take_boundary() != plan.update) wrong += "take_boundary() contradicts the plan\n";
      plan.schedule_ticks = window.call_schedule();
      plan.schedule_position = window.schedule_position();
      wrong += difference(shape, plan, expected);
      if (!wrong.empty()) break;
    }
    differences.add(wrong);
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

void TestWindowModel::a_stream_says_what_a_known_length_says() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = random_shape(seed);
    if (!can_stream(shape)) continue;
    const ModelRun run = model_of(shape);
    for (const Foresight foresight : {Foresight::epoch, Foresight::group}) {
      if (drops(shape) && foresight != Foresight::epoch) continue;  // the window before would have to know
      AccumulationWindow window(as_stream(shape, run));
      std::string wrong;
      for (std::size_t i = 0; i <= run.plans.size() && wrong.empty(); ++i) {
        const bool goes_on = foresee(window, shape, foresight);
        std::optional<MicroPlan> plan = goes_on ? window.next() : std::nullopt;
        const std::optional<MicroPlan> expected = line_of(run, i);
        // A window that crosses into an epoch of unknown length has the size that it may come to.
        if (plan && expected && shape.knobs.tail == EpochTail::carry) plan = without_foresight(*plan, *expected, shape);
        wrong = difference(shape, plan, expected);
      }
      differences.add(wrong);
    }
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

void TestWindowModel::goes_on_from_any_micro_step() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared / 10; ++seed) {
    const WindowShape shape = random_shape(seed);
    const ModelRun run = model_of(shape);
    AccumulationWindow stepped(shape);
    for (std::size_t done = 0; done <= run.plans.size(); ++done) {
      AccumulationWindow sought(shape);
      sought.seek(static_cast<std::int64_t>(done));
      differences.add(compare_rest(shape, sought, run, done));
      AccumulationWindow restored(shape);
      restored.restore(stepped.position());
      differences.add(compare_rest(shape, restored, run, done));
      AccumulationWindow copied(stepped);
      differences.add(difference(shape, copied.peek(), line_of(run, done)));
      stepped.next();
    }
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

/// A shape whose run has many epochs, so that most of it repeats, and N that is changed by hand on the way.
WindowShape long_shape(std::uint64_t seed) {
  Dice dice(seed);
  WindowShape shape = random_shape(seed);
  shape.max_iters.reset();
  shape.max_epochs = shape.max_updates = shape.max_micro_steps = std::nullopt;
  const auto limit = dice.from(0, 2);
  if (limit == 0) shape.max_epochs = dice.from(1, 300);
  if (limit == 1) shape.max_micro_steps = dice.from(1, 5000);
  if (limit == 2) shape.max_updates = dice.from(1, 800);
  if (limit == 2 && shape.knobs.counter_reset == CounterReset::epoch_end) shape.max_epochs = dice.from(1, 300);
  if (shape.schedule_total) shape.schedule_total = dice.from(1, 1000);
  for (LengthChange& change : shape.length_schedule) change.from *= dice.from(1, 40);
  std::ranges::sort(shape.length_schedule, {}, &LengthChange::from);
  const auto [last, end] = std::ranges::unique(shape.length_schedule, {}, &LengthChange::from);
  shape.length_schedule.erase(last, end);
  for (std::int64_t sets = dice.chance(25) ? dice.from(1, 3) : 0; sets > 0; --sets)
    shape.set_steps_after(dice.from(0, 300), dice.from(1, 12), true);
  return AccumulationWindow(shape).shape();  // with the micro-steps of the run, where its normaliser asks for them
}

/// One micro-step after another, and what there is to count on the way.
struct Stepped {
  std::vector<WindowPosition> positions{WindowPosition{}};
  std::vector<std::int64_t> last_batches{0};
  WindowTotals totals;
  bool ends = true;
};

Stepped step_through(const WindowShape& shape) {
  constexpr std::int64_t far_enough = 20'000;
  Stepped stepped;
  WindowPosition at;
  WindowTransition transition(shape, at);
  while (const auto micro = transition.advance(false, stepped.totals.dropped_batches)) {
    stepped.totals.epochs_started = micro->epoch + 1;
    stepped.positions.push_back(at);
    const bool last = micro->batch == shape.batches_per_epoch - 1;
    stepped.last_batches.push_back(stepped.last_batches.back() + (last ? 1 : 0));
    if (at.micro_step() < far_enough) continue;
    stepped.ends = false;
    break;
  }
  stepped.totals.micro_steps = at.micro_step();
  stepped.totals.updates = at.updates();
  stepped.totals.schedule_ticks = at.schedule_position();
  stepped.totals.left_over_micro_steps = at.position();
  return stepped;
}

std::string field_by_field(const WindowPosition& at) {
  std::ostringstream text;
  for_each_field(at, [&](const char* name, std::int64_t value) { text << " " << name << " " << value; });
  return text.str();
}

/// Where a walk to a target arrives, against the first place at which the steps have reached it.
std::string compare_walk(const WindowShape& shape, const Stepped& stepped, const WalkClock& clock,
                         std::int64_t target) {
  const auto value = [&](std::size_t i) {
    const WindowPosition& at = stepped.positions[i];
    return clock.per_micro_step * at.micro_step() + clock.per_update * at.updates() +
           clock.per_last_batch * stepped.last_batches[i] + clock.per_tick * at.schedule_position();
  };
  std::size_t expected = 1;
  while (expected < stepped.positions.size() && value(expected) < target) ++expected;
  const bool comes = expected < stepped.positions.size();
  if (!comes && !stepped.ends) return {};
  WindowWalk walk(shape);
  if (walk.to(clock, target) != comes) return in_words(shape) + ": whether " + std::to_string(target) + " is reached\n";
  const WindowPosition& there = comes ? stepped.positions[expected] : stepped.positions.back();
  if (comes && walk.count(clock) != value(expected)) return in_words(shape) + ": the count at the target\n";
  if (walk.at() == there || (!comes && walk.at().micro_step() == there.micro_step())) return {};
  return in_words(shape) + "\n  walked: " + field_by_field(walk.at()) + "\n  stepped:" + field_by_field(there);
}

void TestWindowModel::passes_over_what_repeats_as_if_it_stepped() {
  Differences differences;
  std::int64_t passed = 0;
  for (std::uint64_t seed = 0; seed < shapes_compared / 2; ++seed) {
    const WindowShape shape = long_shape(seed);
    const Stepped stepped = step_through(shape);
    Dice dice(seed);
    const WindowTotals walked = total_windows(shape);
    if (stepped.ends && walked != stepped.totals)
      differences.add(in_words(shape) + "\n  walked:  " + in_words(walked) +
                      "\n  stepped: " + in_words(stepped.totals));
    for (int round = 0; round < 4; ++round) {
      const std::int64_t most = stepped.totals.micro_steps;
      differences.add(compare_walk(shape, stepped, {.per_micro_step = 1}, dice.from(1, most + 5)));
      differences.add(compare_walk(shape, stepped, {.per_update = 1}, dice.from(1, stepped.totals.updates + 2)));
      differences.add(compare_walk(shape, stepped, {.per_tick = 1}, dice.from(1, stepped.totals.schedule_ticks + 2)));
      differences.add(
          compare_walk(shape, stepped, {.per_micro_step = 8, .per_last_batch = -5}, dice.from(1, 8 * most + 1)));
    }
    passed += stepped.totals.micro_steps;
  }
  QVERIFY2(differences.count() == 0, differences.report());
  QVERIFY(passed > 100 * shapes_compared);
}

void TestWindowModel::passes_over_updates_as_if_it_stepped() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = random_shape(seed);
    const ModelRun run = model_of(shape);
    Dice dice(seed);
    AccumulationWindow window(shape);
    std::string wrong;
    for (std::size_t done = 0; done <= run.plans.size() && wrong.empty();) {
      const std::int64_t updates = dice.from(0, 6);
      window.pass_updates(updates);
      for (std::int64_t left = updates; left > 0 && done < run.plans.size(); ++done) left -= run.plans[done].update;
      wrong = difference(shape, window.next(), line_of(run, done++));
    }
    differences.add(wrong);
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

/// The longest runs that a plan may have: what each takes has to depend on neither its length nor N.
void TestWindowModel::the_longest_runs_are_counted_at_once() {
  std::int64_t runs = 0;
  for (const std::int64_t length : {1, 2, 7, 40, 99'991, 3'000'017})
    for (const std::int64_t steps : {1, 3, 40, 999'983, 1'048'576})
      for (const Dialect dialect : all_dialects)
        for (const EpochTail tail : {EpochTail::carry, EpochTail::drop_stop, EpochTail::flush, EpochTail::pad_repeat}) {
          WindowShape shape;
          shape.knobs = preset(dialect);
          shape.knobs.tail = tail;
          shape.steps = steps;
          shape.batches_per_epoch = length;
          shape.world = 2;
          shape.max_micro_steps = 100'000'000;
          const std::clock_t begin = std::clock();
          const WindowTotals totals = total_windows(shape);
          const auto ms = (std::clock() - begin) / (CLOCKS_PER_SEC / 1000);
          if (ms > 500) QFAIL((in_words(shape) + " takes " + std::to_string(ms) + " ms").c_str());
          if (tail != EpochTail::drop_stop) QCOMPARE(totals.micro_steps, 100'000'000);
          ++runs;
        }
  QCOMPARE(runs, 6 * 5 * 5 * 4);
}

void TestWindowModel::an_overflow_holds_or_advances_the_schedule() {
  Differences differences;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    WindowShape shape = random_shape(seed);
    const ScheduleClock clock = shape.knobs.schedule_clock;
    const bool by_update = clock == ScheduleClock::update || clock == ScheduleClock::update_times_world;
    // Only a clock of updates can miss one; a schedule that its caller steps never asks.
    if (!by_update && clock != ScheduleClock::external) shape.knobs.overflow = OverflowPolicy::advance;
    const ModelRun run = model_of(shape);
    Dice dice(seed);
    AccumulationWindow window(shape);
    ModelSchedule schedule;
    for (std::size_t i = 0; i < run.plans.size(); ++i) {
      const MicroPlan& expected = run.plans[i];
      if (!window.next()) break;
      const bool skipped = expected.update && dice.chance(30);
      schedule.after(shape, expected, skipped);
      if (skipped) window.report(StepOutcome::skipped_overflow);
      if (window.schedule_position() == schedule.position) continue;
      differences.add(in_words(shape) + "\n  after " + in_words(expected) + (skipped ? " skipped" : "") +
                      "\n  planner: " + std::to_string(window.schedule_position()) +
                      "\n  model:   " + std::to_string(schedule.position));
      break;
    }
  }
  QVERIFY2(differences.count() == 0, differences.report());
}

void TestWindowModel::a_requested_boundary_ends_the_window() {
  int asked = 0;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    WindowShape shape = random_shape(seed);
    // A counter that a request does not set back may pass an N that grows smaller.
    shape.knobs.group_length = GroupLength::fixed;
    shape.length_schedule.clear();
    Dice dice(seed);
    AccumulationWindow window(shape);
    std::int64_t updates = 0;
    for (int i = 0; i < 30; ++i) {
      const bool ask = dice.chance(20) && window.open_micro_steps() > 0;
      if (ask) window.request_boundary();
      const std::optional<MicroPlan> plan = window.next();
      if (!plan) break;
      QVERIFY2(!ask || plan->update, (in_words(shape) + "\n" + in_words(*plan)).c_str());
      QVERIFY2(ask || plan->reason != BoundaryReason::requested, in_words(*plan).c_str());
      QVERIFY2(!plan->update || plan->window_size == plan->position + 1, in_words(*plan).c_str());
      asked += plan->reason == BoundaryReason::requested ? 1 : 0;
      updates += plan->update ? 1 : 0;
      QCOMPARE(window.updates_done(), updates);
      QCOMPARE(window.open_micro_steps(), plan->update ? 0 : plan->position + 1);
    }
  }
  QVERIFY(asked > shapes_compared / 4);
}

QTEST_APPLESS_MAIN(TestWindowModel)
#include "test_window_model.moc"
