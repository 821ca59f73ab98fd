// SPDX-License-Identifier: Apache-2.0
// The planner against a model of it: slow, obvious, and written from what the systems do rather than from the planner.
// The model writes a whole run down at once, as a list: first every micro-step of every epoch, then the cut at the
// run's limits, then what can only be known backwards (sizes of windows, the end of the run). The planner answers one
// micro-step at a time, may be asked in the order of somebody else's loop, sought, restored and skipped ahead. All of
// them have to say the same, on 10,000 random shapes.
#include <QTest>

#include "accrue/run/window/window_ends.h"
#include "support/test_program.h"
#include "window_model.h"

namespace test_window_model {

using namespace accrue;
using namespace accrue::window_model;

namespace {

constexpr int shapes_compared = 10'000;

/// Returns the first place at which the rest of a window's answers differ from the model.
std::string compare_rest(const WindowShape& shape, AccumulationWindow& window, const ModelRun& run, std::size_t from) {
  for (std::size_t i = from; i <= run.plans.size(); ++i)
    if (const std::string wrong = difference(shape, window.next(), line_of(run, i)); !wrong.empty()) return wrong;
  return {};
}

// Time at which a stream learns that its epoch ends.
enum class Foresight { epoch, group, batch };

/// Tells a window of unknown length what its reader knows before the next micro-step. False when the run is over.
bool foresee(AccumulationWindow& window, const WindowShape& known, Foresight foresight) {
  while (const auto next = window.peek()) {
    const WindowPosition& at = window.position();
    if (at.epoch_length() != 0 && at.epoch() == next->epoch) return true;
    const std::int64_t left = known.batches_per_epoch - next->batch;
    const std::int64_t ahead = length_at(known, next->epoch, next->window, 0);
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

/// Copies from the other side the values that a reader with that foresight cannot know before a window ends.
MicroPlan without_foresight(MicroPlan plan, const MicroPlan& other, const WindowShape& shape) {
  plan.window_size = other.window_size;
  if (shape.knobs.normalizer == Normalizer::true_size) plan.division = other.division;
  return plan;
}

/// Without a known length it cannot be known that a missed N will never be met.
bool can_stream(const WindowShape& shape) {
  const bool meets =
      shape.knobs.boundary_compare == BoundaryCompare::exact || shape.knobs.boundary_compare == BoundaryCompare::plan;
  const bool may_miss = meets && shape.knobs.group_length != GroupLength::fixed;
  const bool counts = shape.samples.each > 0;  // whose last batch a stream cannot tell
  return shape.batches_per_epoch > 0 && !may_miss && !counts && !model_of(shape).plans.empty();
}

}  // namespace

class TestWindowModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_field_of_every_plan() {
    Differences differences;
    for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
      const WindowShape shape = random_shape(seed);
      const ModelRun run = model_of(shape);
      AccumulationWindow window(shape);
      differences.add(compare_rest(shape, window, run, 0));
    }
    QVERIFY2(differences.count() == 0, differences.report());
  }

  void totals() {
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

  void a_loop_that_calls_says_what_the_plan_says() {
    Differences differences;
    for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
      const WindowShape shape = random_shape(seed);
      if (!can_stream(shape)) continue;
      // Dropped batches must be known before the last kept window.
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

  void a_stream_says_what_a_known_length_says() {
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
          if (plan && expected && shape.knobs.tail == EpochTail::carry)
            plan = without_foresight(*plan, *expected, shape);
          wrong = difference(shape, plan, expected);
        }
        differences.add(wrong);
      }
    }
    QVERIFY2(differences.count() == 0, differences.report());
  }

  void goes_on_from_any_micro_step() {
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

  void passes_over_updates_as_if_it_stepped() {
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

  void goes_from_update_to_update_as_if_it_stepped() {
    Differences differences;
    for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
      const WindowShape shape = random_shape(seed);
      const ModelRun run = model_of(shape);
      AccumulationWindow window(shape);
      std::string wrong;
      for (std::size_t i = 0; i <= run.plans.size() && wrong.empty(); ++i)
        if (i == run.plans.size() || run.plans[i].update)
          wrong = difference(shape, next_update(window), line_of(run, i));
      differences.add(wrong);
    }
    QVERIFY2(differences.count() == 0, differences.report());
  }

  void an_overflow_holds_or_advances_the_schedule() {
    Differences differences;
    for (std::uint64_t seed = 0; seed < shapes_compared; ++seed) {
      WindowShape shape = random_shape(seed);
      const ScheduleClock clock = shape.knobs.schedule_clock;
      const bool by_update = clock == ScheduleClock::update || clock == ScheduleClock::update_times_world;
      // Only a clock of updates can miss one; a schedule that its caller steps never asks.
      if (!by_update && !shape.schedule_in_samples && clock != ScheduleClock::external)
        shape.knobs.overflow = OverflowPolicy::advance;
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
};

ACCRUE_TEST_MAIN(TestWindowModel)

}  // namespace test_window_model
#include "test_window_model.moc"
