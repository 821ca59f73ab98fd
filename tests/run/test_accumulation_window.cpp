// SPDX-License-Identifier: Apache-2.0
// Changes of a window while it is walked, and rules of single systems. tests/scenarios covers the five systems on ten
// batches; test_window_model compares the planner with a model of it over ten thousand random shapes.
#include <QElapsedTimer>
#include <QTest>

#include <map>
#include <random>

#include "accrue/run/events/steps_record.h"
#include "accrue/run/fields/choice_names.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/window/accumulation_window.h"
#include "support/test_program.h"
#include "support/window_positions.h"

namespace test_accumulation_window {

using namespace accrue;

namespace {

WindowShape shape_of(Dialect dialect, std::int64_t batches, std::int64_t steps, std::int64_t epochs,
                     std::int64_t world = 1) {
  WindowShape shape;
  shape.knobs = preset(dialect);
  shape.steps = steps;
  shape.batches_per_epoch = batches;
  shape.world = world;
  shape.max_epochs = epochs;
  return shape;
}

std::vector<MicroPlan> all(const WindowShape& shape) {
  return preview_windows(shape, 1'000'000);
}

QString updates_at(const std::vector<MicroPlan>& plans) {
  QStringList at;
  for (const MicroPlan& micro : plans)
    if (micro.update) at << QString::number(micro.micro_step);
  return at.join(' ');
}

QString schedule_digits(const std::vector<MicroPlan>& plans) {
  QStringList at;
  for (const MicroPlan& micro : plans) at << QString::number(micro.schedule_position);
  return at.join(' ');
}

QString divisors(const std::vector<MicroPlan>& plans) {
  QStringList of;
  for (const MicroPlan& micro : plans)
    of << (micro.division.number() && micro.division.when == NormalizeWhen::eager
               ? QString::number(*micro.division.number())
               : QStringLiteral("-"));
  return of.join(' ');
}

}  // namespace

class TestAccumulationWindow : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void mmengine_divides_by_the_remainder_of_max_iters() {
    WindowShape shape = shape_of(Dialect::mmengine, 100, 3, 1);
    shape.max_iters = 100;
    const auto plans = all(shape);
    QCOMPARE(plans[98].division.value, 3.0);
    QCOMPARE(plans[99].division.value, 1.0);
    QVERIFY(plans[98].update);
    QVERIFY(plans[99].update);
    QCOMPARE(plans[99].reason, BoundaryReason::run_end);
  }

  void a_shorter_window_neither_stops_the_schedule_nor_the_divisor() {
    // N goes from 4 to 2 with the third update: the scheduler's own count of calls must not run past it.
    WindowShape llm = shape_of(Dialect::llm, 8, 4, 2);
    llm.knobs.group_length = GroupLength::by_update;
    llm.length_schedule = {{.from = 0, .steps = 4}, {.from = 2, .steps = 2}};
    QCOMPARE(updates_at(all(llm)), QString("4 8 10 12 14 16"));
    QCOMPARE(schedule_digits(all(llm)), QString("0 0 0 1 1 1 1 2 2 3 3 4 4 5 5 6"));

    WindowShape eager = shape_of(Dialect::accrue, 8, 4, 2);
    eager.knobs.normalizer = Normalizer::steps;
    eager.knobs.normalize_when = NormalizeWhen::eager;
    eager.knobs.group_length = GroupLength::by_epoch;
    eager.length_schedule = {{.from = 0, .steps = 4}, {.from = 1, .steps = 2}};
    QCOMPARE(divisors(all(eager)), QString("4 4 4 4 4 4 4 4 2 2 2 2 2 2 2 2"));
  }

  void accelerate_counts_from_the_start_of_every_epoch() {
    WindowShape shape = shape_of(Dialect::accelerate, 8, 4, 2);
    shape.knobs.group_length = GroupLength::by_epoch;
    shape.length_schedule = {{.from = 0, .steps = 4}, {.from = 1, .steps = 3}};
    QCOMPARE(updates_at(all(shape)), QString("4 8 11 14 16"));
  }

  void sync_each_batch_reduces_every_micro_step_and_updates_as_before() {
    AccumulationSpec spec;
    spec.dialect = Dialect::accelerate;
    spec.sync_each_batch = true;
    WindowShape shape = shape_of(Dialect::accelerate, 5, 2, 1);
    shape.knobs = resolve_knobs(spec);
    const auto plans = all(shape);
    QVERIFY(std::all_of(plans.begin(), plans.end(), [](const MicroPlan& m) { return m.sync; }));
    QCOMPARE(updates_at(plans), QString("2 4 5"));
  }

  void an_overflow_holds_the_schedule_where_the_dialect_says_so() {
    for (const Dialect dialect : {Dialect::accrue, Dialect::accelerate, Dialect::llm, Dialect::colossalai}) {
      const int after_overflow = dialect == Dialect::llm || dialect == Dialect::colossalai ? 1 : 0;
      AccumulationWindow window(shape_of(dialect, 8, 2, 1));
      window.next();
      QVERIFY(window.next()->update);
      window.report(StepOutcome::skipped_overflow);
      QCOMPARE(window.schedule_position(), after_overflow);
      window.next();
      window.next();
      QCOMPARE(window.schedule_position(), after_overflow + 1);
    }
  }

  void a_schedule_in_samples_moves_by_those_of_the_updates_that_were_done() {
    for (const Dialect dialect : {Dialect::accrue, Dialect::llm}) {  // one holds after an overflow, one advances
      WindowShape shape = shape_of(dialect, 5, 2, 2);
      shape.knobs.schedule_clock = ScheduleClock::update;
      shape.knobs.tail = EpochTail::flush;
      shape.knobs.counter_reset = CounterReset::at_flush;
      shape.samples = {8, 3};
      shape.schedule_in_samples = true;
      QCOMPARE(schedule_digits(all(shape)), QString("0 16 16 32 35 35 51 51 67 70"));
      QCOMPARE(total_windows(shape).samples, 70);
      AccumulationWindow window(shape);
      window.pass_updates(1);
      window.next();
      QCOMPARE(window.next()->samples_before, 16);
      window.report(StepOutcome::skipped_overflow);
      QCOMPARE(window.schedule_position(), 16);
      QCOMPARE(window.next()->samples_before, 16);
      QCOMPARE(window.schedule_position(), 19);
      QCOMPARE(window.position().samples(), 35);  // trained on, skipped or not
      QCOMPARE(window.next()->samples_before, 19);
    }
  }

  void a_place_counted_anew_keeps_the_samples_of_skipped_updates() {
    WindowShape shape = shape_of(Dialect::accrue, 8, 2, 2);
    shape.samples = {8, 8};
    AccumulationWindow window(shape);
    window.pass_updates(1);
    window.report(StepOutcome::skipped_overflow);
    shape.steps = 4;  // an update of 16 samples in four micro-steps instead of two
    shape.samples = {4, 4};
    shape.batches_per_epoch = 16;
    AccumulationWindow recounted(shape);
    recounted.pass_updates(1);
    recounted.restore(recounted.position().with_schedule_of(window.position()));
    QCOMPARE(recounted.next()->samples_before, 0);  // 16 passed, and all 16 skipped
    QCOMPARE(recounted.position().skipped_samples(), 16);
  }

  void a_window_that_crosses_epochs_counts_the_short_batch_inside_it() {
    WindowShape shape = shape_of(Dialect::llm, 3, 2, 2);
    shape.knobs.schedule_clock = ScheduleClock::update;
    shape.samples = {8, 3};
    shape.schedule_in_samples = true;
    QCOMPARE(schedule_digits(all(shape)), QString("0 16 16 27 27 38"));
  }

  /// 16 samples, then 24, then 32, by what was trained on before, whatever became of it.
  void a_ramp_lengthens_windows_by_the_samples_before_them() {
    WindowShape shape = shape_of(Dialect::accrue, 100, 4, 1);
    shape.samples = {8, 8};
    shape.rampup = RampUp{16, 8, 96, 32};
    QVERIFY(updates_at(all(shape)).startsWith("2 4 6 9 12 16 20 24"));  // 24 samples from 48 on, 32 from 96 on
    AccumulationWindow window(shape);
    window.next();
    window.next();
    window.report(StepOutcome::skipped_overflow);
    window.pass_updates(2);
    QCOMPARE(window.next()->window_size, 3);
    AccumulationWindow sought(shape);
    sought.seek(11);
    QCOMPARE(sought.next()->position, 2);
  }

  void the_guard_on_total_stops_inner_steps() {
    WindowShape shape = shape_of(Dialect::accelerate, 8, 2, 1, 3);
    shape.schedule_total = 4;
    QCOMPARE(schedule_digits(all(shape)), QString("0 3 3 4 4 4 4 4"));
  }

  void a_loader_that_ends_inside_a_window_shortens_its_planned_size() {
    WindowShape shape = shape_of(Dialect::accelerate, unknown_length, 4, 1);
    shape.max_epochs.reset();
    AccumulationWindow window(shape);
    QCOMPARE(window.count().window_size, std::int64_t{4});
    window.announce_end(2);
    QCOMPARE(window.count().window_size, std::int64_t{3});
    const MicroPlan last = window.count();
    QCOMPARE(last.window_size, std::int64_t{3});
    QCOMPARE(last.reason, BoundaryReason::epoch_end);
  }

  void a_lost_window_begins_anew_or_keeps_its_phase() {
    for (const bool recount : {true, false}) {
      AccumulationWindow window(shape_of(Dialect::llm, 12, 4, 1));
      window.next();
      window.next();
      window.lose_open_window(recount);
      QCOMPARE(window.open_micro_steps(), std::int64_t{0});
      std::int64_t counted = 1;
      while (!window.next()->update) ++counted;
      QCOMPARE(counted, recount ? std::int64_t{4} : std::int64_t{2});
    }
  }

  void a_count_taken_over_from_another_program_stands_where_it_stood() {
    WindowShape shape = shape_of(Dialect::mmengine, unknown_length, 4, 1);
    shape.max_epochs.reset();
    AccumulationWindow window(shape);
    window.resume_at(6);
    QVERIFY(!window.boundary_due());
    QVERIFY(!window.count().update);
    QVERIFY(window.count().update);  // the eighth
    window.resume_at(8);
    QVERIFY(window.boundary_due());
  }

  void schedules_that_follow_one_window_have_their_own_totals() {
    AccumulationWindow window(shape_of(Dialect::accelerate, unknown_length, 2, 1, 2));
    FollowingSchedule open, guarded{.total = 5};
    window.count();
    QCOMPARE(window.call_schedule(guarded, false), std::int64_t{0});
    window.count();
    QCOMPARE(window.call_schedule(guarded, false), std::int64_t{2});
    QCOMPARE(window.call_schedule(guarded, true), std::int64_t{0});
    guarded.guard_count += 2;  // taken elsewhere
    QCOMPARE(window.call_schedule(guarded, false), std::int64_t{1});
    QCOMPARE(window.call_schedule(open, false), std::int64_t{2});
    QCOMPARE(guarded.position, std::int64_t{3});
    QCOMPARE(window.schedule_position(), std::int64_t{0});
  }

  void a_position_is_kept_whole_by_its_fields() {
    const WindowPosition all_set = numbered_position();
    std::map<std::string, std::int64_t> kept;
    for_each_field(all_set, [&](const char* name, std::int64_t value) { kept[name] = value; });
    WindowPosition read;
    for_each_field(read, [&](const char* name, auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(kept.at(name));
    });
    QCOMPARE(read, all_set);
    QVERIFY(!(read == WindowPosition{}));
    QCOMPARE(kept.size() * sizeof(std::int64_t), sizeof(WindowPosition));  // a new field has to be listed
  }

  void a_plan_says_by_what_its_loss_is_divided_and_when() {
    const auto of = [](Normalizer normalizer, NormalizeWhen when, NormalizerScope scope, std::int64_t ranks) {
      WindowShape shape = shape_of(Dialect::accrue, 10, 4, 1, ranks);
      shape.knobs.normalizer = normalizer;
      shape.knobs.normalize_when = when;
      shape.knobs.normalizer_scope = scope;
      return all(shape).back().division;
    };
    using By = Division::By;
    constexpr auto eager = NormalizeWhen::eager, deferred = NormalizeWhen::deferred;
    constexpr auto rank = NormalizerScope::rank, ranks = NormalizerScope::data_parallel;
    QCOMPARE(of(Normalizer::steps, deferred, ranks, 1), (Division{By::number, 4.0, deferred}));
    QCOMPARE(of(Normalizer::true_size, eager, ranks, 2), (Division{By::number, 2.0, eager}));
    QCOMPARE(of(Normalizer::run_remainder, deferred, rank, 2), (Division{By::number, 2.0, deferred}));
    QCOMPARE(of(Normalizer::none, eager, ranks, 1), (Division{By::none, 1.0, eager}));
    QCOMPARE(of(Normalizer::samples, deferred, ranks, 2), (Division{By::samples, 1.0, deferred}));
    QCOMPARE(of(Normalizer::tokens, deferred, rank, 1), (Division{By::items, 1.0, deferred}));
    // Ranks that each count for themselves have to divide before their gradients are added up.
    QCOMPARE(of(Normalizer::tokens, deferred, rank, 2), (Division{By::items, 1.0, eager}));
  }

  void a_plan_counts_the_batches_that_are_dropped_after_it() {
    const auto dropped = [](Dialect dialect) {
      std::int64_t all_dropped = 0;
      for (const MicroPlan& micro : all(shape_of(dialect, 10, 4, 2))) all_dropped += micro.dropped_after;
      return all_dropped;
    };
    QCOMPARE(dropped(Dialect::colossalai), std::int64_t{4});
    QCOMPARE(dropped(Dialect::accrue), std::int64_t{0});
    QCOMPARE(dropped(Dialect::llm), std::int64_t{0});
  }

  void a_length_schedule_changes_n_by_update_and_by_epoch() {
    WindowShape by_update = shape_of(Dialect::accrue, 12, 1, 1);
    by_update.knobs.group_length = GroupLength::by_update;
    by_update.length_schedule = {{.from = 2, .steps = 3}, {.from = 4, .steps = 4}};
    QCOMPARE(updates_at(all(by_update)), QString("1 2 5 8 12"));
    WindowShape by_epoch = shape_of(Dialect::accrue, 4, 2, 2);
    by_epoch.knobs.group_length = GroupLength::by_epoch;
    by_epoch.length_schedule = {{.from = 1, .steps = 4}};
    QCOMPARE(updates_at(all(by_epoch)), QString("2 4 8"));
  }

  void n_set_by_hand_holds_from_the_window_after_that_update() {
    WindowShape shape = shape_of(Dialect::accrue, 10, 4, 2);
    shape.steps_set = {{1, 2}, {4, 5}};
    QCOMPARE(updates_at(all(shape)), QStringLiteral("4 6 8 10 15 20"));
    QCOMPARE(total_windows(shape).updates, 6);
    shape.forget_steps_after(3);
    QCOMPARE(updates_at(all(shape)), QStringLiteral("4 6 8 10 12 14 16 18 20"));
    shape.set_steps_after(1, 3);
    QCOMPARE(updates_at(all(shape)), QStringLiteral("4 7 10 13 16 19 20"));
    QCOMPARE(shape.steps_now(), 3);
    shape.steps_set = {{1, 2}, {4, 5}};
    shape.set_steps_after(1, 2, true);  // a continued run repeats it
    QCOMPARE(shape.steps_set, (std::vector<LengthChange>{{1, 2}, {4, 5}}));
    shape.forget_steps_after(0);
    shape.set_steps_after(4, 5, true);
    shape.set_steps_after(1, 2, true);
    QCOMPARE(shape.steps_set, (std::vector<LengthChange>{{1, 2}, {4, 5}}));
    shape.set_steps_after(1, 2);  // requested now
    QCOMPARE(shape.steps_set, (std::vector<LengthChange>{{1, 2}}));
  }

  void a_window_that_only_the_runs_end_closes_knows_its_size() {
    WindowShape shape = shape_of(Dialect::accrue, 2, 5, 12);
    shape.knobs.tail = EpochTail::carry;
    shape.knobs.counter_reset = CounterReset::epoch_end;  // the counter never gets to 5
    shape.knobs.boundary_compare = BoundaryCompare::exact;
    shape.knobs.normalizer = Normalizer::true_size;
    shape.knobs.normalize_when = NormalizeWhen::eager;
    const auto walked = all(shape);
    QCOMPARE(std::ssize(walked), std::ptrdiff_t(24));
    for (const MicroPlan& micro : walked) {
      QCOMPARE(micro.window_size, std::int64_t{24});
      QCOMPARE(micro.division.number(), std::optional(24.0));
    }
  }

  void a_runs_events_say_what_n_was_set_by_hand() {
    WindowShape shape = shape_of(Dialect::accrue, 10, 4, 2);
    const auto changed = [](std::int64_t rank, std::int64_t update, std::int64_t steps, bool repeated = false) {
      return RunEvent{rank, 0, 0, StepsChanged{.update = update, .steps = steps, .repeated = repeated}};
    };
    const auto resumed = [](std::int64_t update) {
      RunStarted started;
      started.resumed = true;
      started.resumed_update = update;
      return RunEvent{supervisor_rank, 0, 0, started};
    };
    QVERIFY(take_steps(shape, changed(0, 1, 2)));
    QVERIFY2(!take_steps(shape, changed(1, 1, 3)), "the other ranks tell the same once more");
    QVERIFY(take_steps(shape, changed(0, 4, 5)));
    QVERIFY(!take_steps(shape, resumed(4)));
    QVERIFY(take_steps(shape, resumed(3)));
    QCOMPARE(shape.steps_set, (std::vector<LengthChange>{{1, 2}}));
    QVERIFY(!take_steps(shape, {supervisor_rank, 0, 0, RunStarted{}}));
    QVERIFY(take_steps(shape, changed(0, 1, 2, true)));
    QCOMPARE(shape.steps_set, (std::vector<LengthChange>{{1, 2}}));
  }

  void n_set_by_hand_is_compared_with_accelerates_running_counter() {
    WindowShape shape = shape_of(Dialect::accelerate, 20, 4, 1);
    shape.steps_set = {{1, 3}};  // the counter stands at 4: the next multiple of 3 is 6
    QCOMPARE(updates_at(all(shape)), QStringLiteral("4 6 9 12 15 18 20"));
  }

  /// A run whose N is set while it runs equals one that knows these settings from the record.
  void n_set_while_walking_equals_n_set_in_the_shape() {
    std::mt19937 random(20261121);
    const auto pick = [&random](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    int compared = 0;
    for (int round = 0; round < 2000; ++round) {
      const Dialect dialect = pick(0, 1) == 0 ? Dialect::accrue : Dialect::accelerate;
      WindowShape shape = shape_of(dialect, pick(1, 40), pick(1, 9), pick(1, 4), pick(1, 3));
      shape.knobs.tail = static_cast<EpochTail>(pick(0, 4));
      shape.knobs.schedule_clock = static_cast<ScheduleClock>(pick(0, 4));
      if (pick(0, 3) == 0) shape.max_updates = pick(1, 20);
      AccumulationWindow told(shape);
      WindowShape known = shape;
      std::vector<MicroPlan> walked;
      while (const auto micro = told.next()) {
        walked.push_back(*micro);
        if (!micro->update || pick(0, 2) > 0) continue;
        const std::int64_t steps = pick(1, 9);
        told.change_steps(steps);
        known.set_steps_after(micro->window + 1, steps);
      }
      QCOMPARE(all(known), walked);
      QCOMPARE(total_windows(known).updates, told.updates_done());
      AccumulationWindow sought(known);
      const std::int64_t at = pick(0, std::ssize(walked));
      sought.seek(at);
      QCOMPARE(sought.next(),
               at < std::ssize(walked) ? std::optional(walked[static_cast<std::size_t>(at)]) : std::nullopt);
      compared += known.steps_set.empty() ? 0 : 1;
    }
    QVERIFY2(compared > 1000, "the changes must not miss the runs");
  }

  void a_loader_shorter_than_n_has_a_defined_plan_for_every_tail() {
    for (const Dialect dialect : {Dialect::accrue, Dialect::accelerate})
      QCOMPARE(updates_at(all(shape_of(dialect, 3, 8, 2))), QString("3 6"));
    QCOMPARE(updates_at(all(shape_of(Dialect::llm, 3, 8, 3))), QString("8"));
    QCOMPARE(updates_at(all(shape_of(Dialect::colossalai, 3, 8, 3))), QString(""));
    WindowShape for_ever = shape_of(Dialect::colossalai, 3, 8, 1);
    for_ever.max_epochs.reset();
    for_ever.max_updates = 5;
    QVERIFY(all(for_ever).empty());
  }

  void totals_of_a_very_long_run_are_found_at_once() {
    WindowShape shape = shape_of(Dialect::accrue, 1'000'000'003, 4, 3, 2);
    QElapsedTimer timer;
    timer.start();
    const WindowTotals totals = total_windows(shape);
    QCOMPARE(totals.micro_steps, 3'000'000'009);
    QCOMPARE(totals.updates, 3 * 250'000'001LL);
    QVERIFY(timer.elapsed() < 1000);
  }
};

ACCRUE_TEST_MAIN(TestAccumulationWindow)

}  // namespace test_accumulation_window
#include "test_accumulation_window.moc"
