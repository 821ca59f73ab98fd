// SPDX-License-Identifier: Apache-2.0
// A walk passes over what repeats. It has to arrive where single steps would, in every field of the position, on five
// thousand long runs; and to take no longer for the longest runs there are.
#include <QTest>

#include <ctime>

#include "accrue/run/whatif/dialect_comparison.h"
#include "support/test_program.h"
#include "window_model.h"
#include "window_transition.h"
#include "window_walk.h"

namespace test_window_walk {

using namespace accrue;
using namespace accrue::window_model;

namespace {

constexpr int shapes_compared = 5'000;

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
  if (shape.rampup) shape.rampup->samples *= dice.from(1, 40);
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
  std::vector<std::int64_t> dropped{0};
  WindowTotals totals;
  bool ends = true;
};

Stepped step_through(const WindowShape& shape) {
  constexpr std::int64_t far_enough = 20'000;
  Stepped stepped;
  WindowPosition at;
  WindowTransition transition(shape, at);
  while (const auto micro = transition.advance(stepped.totals.dropped_batches)) {
    stepped.totals.epochs_started = micro->epoch + 1;
    stepped.positions.push_back(at);
    stepped.dropped.push_back(stepped.totals.dropped_batches);
    if (at.micro_step() < far_enough) continue;
    stepped.ends = false;
    break;
  }
  stepped.totals.micro_steps = at.micro_step();
  stepped.totals.updates = at.updates();
  stepped.totals.schedule_ticks = at.schedule_position();
  stepped.totals.samples = at.passed_samples();
  stepped.totals.left_over_micro_steps = at.position();
  return stepped;
}

std::string field_by_field(const WindowPosition& at) {
  std::ostringstream text;
  for_each_field(at, [&](const char* name, std::int64_t value) { text << " " << name << " " << value; });
  return text.str();
}

/// Compares the end of a walk that starts after `from` micro-steps with the first later place at which the steps have
/// reached the target.
std::string compare_walk(const WindowShape& shape, const Stepped& stepped, const WalkClock& clock, std::int64_t target,
                         std::size_t from = 0) {
  const auto value = [&](std::size_t i) {
    const WindowPosition& at = stepped.positions[i];
    return clock.per_micro_step * at.micro_step() + clock.per_update * at.updates() + clock.per_sample * at.samples() +
           clock.per_tick * at.schedule_position();
  };
  std::size_t expected = from + 1;
  while (expected < stepped.positions.size() && value(expected) < target) ++expected;
  const bool comes = expected < stepped.positions.size();
  if (!comes && !stepped.ends) return {};
  WindowWalk walk(shape, stepped.positions[from]);
  if (walk.to(clock, target) != comes) return in_words(shape) + ": whether " + std::to_string(target) + " is reached\n";
  const WindowPosition& there = comes ? stepped.positions[expected] : stepped.positions.back();
  if (comes && walk.count(clock) != value(expected)) return in_words(shape) + ": the count at the target\n";
  if (walk.at() == there || (!comes && walk.at().micro_step() == there.micro_step())) return {};
  return in_words(shape) + "\n  walked: " + field_by_field(walk.at()) + "\n  stepped:" + field_by_field(there);
}

/// Compares the counts that a walk to the end of the run adds to its start.
std::string compare_rest(const WindowShape& shape, const Stepped& stepped, std::size_t from) {
  if (!stepped.ends) return {};
  WindowWalk walk(shape, stepped.positions[from]);
  walk.to_end();
  const std::int64_t dropped = stepped.totals.dropped_batches - stepped.dropped[from];
  if (walk.at().micro_step() == stepped.totals.micro_steps && walk.at().updates() == stepped.totals.updates &&
      walk.dropped_batches() == dropped)
    return {};
  return in_words(shape) + "\n  from micro-step " + std::to_string(from) + ", walked:" + field_by_field(walk.at()) +
         " dropped " + std::to_string(walk.dropped_batches()) + "\n  stepped: " + in_words(stepped.totals) +
         " dropped " + std::to_string(dropped);
}

}  // namespace

class TestWindowWalk : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void passes_over_what_repeats_as_if_it_stepped();
  void a_walk_from_where_a_run_resumes_arrives_where_single_steps_do();
  void the_longest_runs_are_counted_at_once();
};

void TestWindowWalk::passes_over_what_repeats_as_if_it_stepped() {
  Differences differences;
  std::int64_t passed = 0;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
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
      differences.add(compare_walk(shape, stepped, {.per_sample = 1}, dice.from(1, shape.samples.each * most + 1)));
    }
    passed += stepped.totals.micro_steps;
  }
  QVERIFY2(differences.count() == 0, differences.report());
  QVERIFY(passed > 200 * shapes_compared);
}

void TestWindowWalk::a_walk_from_where_a_run_resumes_arrives_where_single_steps_do() {
  Differences differences;
  std::int64_t inside_windows = 0;
  for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
    const WindowShape shape = long_shape(seed);
    const Stepped stepped = step_through(shape);
    Dice dice(seed);
    for (int round = 0; round < 4; ++round) {
      const auto from = static_cast<std::size_t>(dice.from(0, stepped.totals.micro_steps));
      const WindowPosition& start = stepped.positions[from];
      inside_windows += start.position() > 0;
      const auto ahead = [&dice](std::int64_t now, std::int64_t end) { return dice.from(now, std::max(now, end) + 3); };
      differences.add(compare_walk(shape, stepped, {.per_micro_step = 1},
                                   ahead(start.micro_step(), stepped.totals.micro_steps), from));
      differences.add(
          compare_walk(shape, stepped, {.per_update = 1}, ahead(start.updates(), stepped.totals.updates), from));
      differences.add(compare_walk(shape, stepped, {.per_tick = 1},
                                   ahead(start.schedule_position(), stepped.totals.schedule_ticks), from));
      differences.add(compare_walk(shape, stepped, {.per_sample = 1},
                                   ahead(start.samples(), shape.samples.each * stepped.totals.micro_steps), from));
      differences.add(compare_rest(shape, stepped, from));
    }
  }
  QVERIFY2(differences.count() == 0, differences.report());
  QVERIFY(inside_windows > shapes_compared);
}

/// The longest runs that a plan may have: what each takes has to depend on neither its length nor N.
void TestWindowWalk::the_longest_runs_are_counted_at_once() {
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
          shape.samples = {8, 3};
          shape.schedule_in_samples = shape.knobs.schedule_clock == ScheduleClock::update;
          const bool ramps = steps > 1 && shape.knobs.boundary_compare != BoundaryCompare::modulo;
          const std::int64_t rises = std::min<std::int64_t>(steps - 1, 1000);
          const std::int64_t rise = ramps ? (steps - 1) / rises * 8 : 0;
          if (ramps) shape.rampup = RampUp{8 * steps - rises * rise, rise, 400'000'000, 8 * steps};
          const std::clock_t begin = std::clock();
          const WindowTotals totals = total_windows(shape);
          const auto ms = (std::clock() - begin) / (CLOCKS_PER_SEC / 1000);
          if (ms > 500) QFAIL((in_words(shape) + " takes " + std::to_string(ms) + " ms").c_str());
          if (tail != EpochTail::drop_stop) QCOMPARE(totals.micro_steps, 100'000'000);
          ++runs;
        }
  QCOMPARE(runs, 6 * 5 * 5 * 4);
}

ACCRUE_TEST_MAIN(TestWindowWalk)

}  // namespace test_window_walk
#include "test_window_walk.moc"
