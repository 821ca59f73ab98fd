// SPDX-License-Identifier: GPL-3.0-or-later
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QtTest>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "made_run.h"
#include "models/rank_status.h"
#include "models/run_series.h"
#include "models/series_csv.h"

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

const SeriesStore& micro(const RunSeries& run) {
  return run.series(Metric::microLoss);
}

const SeriesStore& updates(const RunSeries& run) {
  return run.series(Metric::updateLoss);
}

}  // namespace

class TestSeries : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_event_becomes_a_point();
  void a_micro_step_is_the_mean_over_the_items_of_all_ranks();
  void a_micro_step_waits_for_the_slowest_rank();
  void ranks_may_report_in_any_order();
  void a_rank_that_never_reports_does_not_hold_the_others_forever();
  void all_clocks_agree_at_a_boundary();
  void every_clock_rises();
  void without_a_plan_clocks_are_still_told();
  void batches_and_single_events_give_the_same_series();
  void one_batch_is_one_signal();
  void values_that_are_not_finite_are_kept_and_marked();
  void a_resumed_run_continues_after_its_checkpoint();
  void wall_time_goes_on_after_a_resume();
  void the_plan_is_known_before_the_first_step();
  void the_planned_rate_is_the_used_rate();
  void a_very_long_plan_is_laid_out_at_once();
  void lost_traces_cost_no_walk_from_the_start();
  void the_window_is_one_for_all_ranks();
  void only_a_new_spec_is_told_as_one();
  void the_window_is_counted();
  void the_pace_is_measured_over_all_ranks();
  void states_and_ends_are_followed();
  void recorded_weights_are_series();
  void a_cleared_run_can_be_read_again();
  void csv_holds_every_point();
};

void TestSeries::every_event_becomes_a_point() {
  const MadeRun made{.updates = 30};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(30));
  QCOMPARE(micro(run).size(), static_cast<std::size_t>(made.plan().totals.micro_steps));
  QCOMPARE(updates(run).size(), std::size_t{30});
  QCOMPARE(run.series(Metric::learningRate).size(), std::size_t{30});
  QCOMPARE(run.last().update, 30);
  QCOMPARE(run.progressText(), QStringLiteral("update 30 of 30"));
}

void TestSeries::a_micro_step_is_the_mean_over_the_items_of_all_ranks() {
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(MadeRun{}.plan());
  run.append({{0, 0, 0, MicroSteps{{1}, {1.0}, {300}, {4}, {0}, {10}, {10}}},
              {1, 0, 0, MicroSteps{{1}, {5.0}, {100}, {4}, {0}, {10}, {10}}}});
  QCOMPARE(micro(run).size(), std::size_t{1});
  QCOMPARE(micro(run).value(0), 2.0);
  QCOMPARE(micro(run).clock(Clock::token)[0], 400.0);
  QCOMPARE(micro(run).clock(Clock::sample)[0], 8.0);
}

void TestSeries::a_micro_step_waits_for_the_slowest_rank() {
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(MadeRun{}.plan());
  run.append({{0, 0, 0, MicroSteps{{1, 2}, {1.0, 2.0}, {1, 1}, {4, 4}, {0, 20}, {10, 10}, {10, 10}}}});
  QVERIFY(micro(run).empty());
  run.append({{1, 0, 0, MicroSteps{{1}, {3.0}, {1}, {4}, {0}, {10}, {10}}}});
  QCOMPARE(micro(run).size(), std::size_t{1});
  QCOMPARE(micro(run).value(0), 2.0);
}

void TestSeries::ranks_may_report_in_any_order() {
  const MadeRun made{.ranks = 3, .updates = 20};
  std::vector<RunEvent> inOrder = made.events(20);
  // Each rank keeps its own order; between ranks anything may happen.
  std::map<std::int64_t, std::vector<RunEvent>> perRank;
  for (const RunEvent& event : inOrder) perRank[event.rank].push_back(event);
  RunSeries expected(QStringLiteral("a"), 0);
  RunSeries shuffled(QStringLiteral("b"), 0);
  expected.setPlan(made.plan());
  shuffled.setPlan(made.plan());
  expected.append(inOrder);
  for (const std::int64_t rank : {2, 0, 1}) shuffled.append(perRank[rank]);
  QCOMPARE(micro(shuffled).size(), micro(expected).size());
  for (std::size_t i = 0; i < micro(expected).size(); ++i) {
    QVERIFY(std::abs(micro(shuffled).value(i) - micro(expected).value(i)) < 1e-12);
    QCOMPARE(micro(shuffled).clock(Clock::sample)[i], micro(expected).clock(Clock::sample)[i]);
    QCOMPARE(micro(shuffled).clock(Clock::update)[i], micro(expected).clock(Clock::update)[i]);
  }
}

void TestSeries::a_rank_that_never_reports_does_not_hold_the_others_forever() {
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(MadeRun{.updates = 100000}.plan());
  std::vector<RunEvent> events;
  constexpr int count = 3000;
  for (int m = 1; m <= count; ++m) events.push_back({0, m, 0, MicroSteps{{m}, {1.0}, {1}, {4}, {m}, {0}, {0}}});
  run.append(events);
  QCOMPARE(micro(run).size(), count - MicroStepJoin::patience);
  run.append({{supervisor_rank, 1, 0, RunFinished{.outcome = "failed"}}});
  QCOMPARE(micro(run).size(), std::size_t{count});
}

void TestSeries::all_clocks_agree_at_a_boundary() {
  const MadeRun made{.updates = 25};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(25));
  for (std::size_t u = 0; u < updates(run).size(); ++u) {
    const ClockPoint truth = updates(run).clocks().point(u);
    const std::size_t at = micro(run).clock(Clock::microStep).lowerBound(truth[Clock::microStep]);
    const ClockPoint seen = micro(run).clocks().point(at);
    QCOMPARE(seen[Clock::sample], truth[Clock::sample]);
    QCOMPARE(seen[Clock::token], truth[Clock::token]);
    QVERIFY(std::abs(seen[Clock::update] - truth[Clock::update]) < 1e-6);
    QVERIFY(std::abs(seen[Clock::epoch] - truth[Clock::epoch]) < 1e-6);
    QVERIFY(seen[Clock::seconds] <= truth[Clock::seconds]);
  }
}

void TestSeries::every_clock_rises() {
  const MadeRun made{.steps = 5, .updates = 40, .batchesPerEpoch = 13};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(40));
  for (const Clock clock : allClocks)
    for (std::size_t i = 1; i < micro(run).size(); ++i)
      QVERIFY2(micro(run).clock(clock)[i] > micro(run).clock(clock)[i - 1], qPrintable(clockKey(clock)));
}

void TestSeries::without_a_plan_clocks_are_still_told() {
  const MadeRun made{.updates = 20, .batchesPerEpoch = 80};
  RunSeries run(QStringLiteral("r"), 0);
  run.setSpec(made.plan().spec);
  run.append(made.events(20));
  QCOMPARE(micro(run).size(), std::size_t{80});
  QCOMPARE(micro(run).clock(Clock::update)[79], 20.0);
  QCOMPARE(micro(run).clock(Clock::update)[77], 19.5);
  QCOMPARE(micro(run).clock(Clock::sample)[79], 640.0);
}

void TestSeries::batches_and_single_events_give_the_same_series() {
  const MadeRun made{.updates = 15};
  RunSeries whole(QStringLiteral("a"), 0);
  RunSeries pieces(QStringLiteral("b"), 0);
  for (RunSeries* run : {&whole, &pieces}) run->setPlan(made.plan());
  const std::vector<RunEvent> events = made.events(15);
  whole.append(events);
  for (const RunEvent& event : events) pieces.append({event});
  QCOMPARE(seriesCsv({&pieces}, 0.0), seriesCsv({&whole}, 0.0));
}

void TestSeries::one_batch_is_one_signal() {
  const MadeRun made{.updates = 10};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  QSignalSpy changed(&run, &RunSeries::changed);
  QSignalSpy moved(&run, &RunSeries::stateChanged);
  std::vector<RunEvent> events = made.events(10);
  events.insert(events.begin(), MadeRun::state("running"));
  run.append(events);
  QCOMPARE(changed.count(), 1);
  QCOMPARE(moved.count(), 1);
  run.append({});
  QCOMPARE(changed.count(), 1);
}

void TestSeries::values_that_are_not_finite_are_kept_and_marked() {
  MadeRun made{.ranks = 1, .updates = 5};
  made.loss = [](std::int64_t m, std::int64_t) { return m == 7 ? std::numeric_limits<double>::quiet_NaN() : 1.0; };
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(5));
  QCOMPARE(micro(run).marks().size(), std::size_t{1});
  QCOMPARE(micro(run).marks()[0].index, std::size_t{6});
  QVERIFY(std::isnan(micro(run).value(6)));
  QCOMPARE(updates(run).marks().size(), std::size_t{1});
}

void TestSeries::a_resumed_run_continues_after_its_checkpoint() {
  const MadeRun made{.updates = 30};
  RunSeries straight(QStringLiteral("a"), 0);
  RunSeries broken(QStringLiteral("b"), 0);
  for (RunSeries* run : {&straight, &broken}) run->setPlan(made.plan());
  straight.append(made.events(30));
  broken.append(made.events(17));
  broken.append({{supervisor_rank, 5, 0, RunStarted{.resumed = true, .resumed_update = 10}}});
  QCOMPARE(updates(broken).size(), std::size_t{10});
  QCOMPARE(broken.last().update, 10);
  broken.append(made.events(30, 10));
  QCOMPARE(updates(broken).size(), updates(straight).size());
  QCOMPARE(micro(broken).size(), micro(straight).size());
  for (std::size_t i = 0; i < micro(straight).size(); ++i) {
    QCOMPARE(micro(broken).value(i), micro(straight).value(i));
    QCOMPARE(micro(broken).clock(Clock::sample)[i], micro(straight).clock(Clock::sample)[i]);
    QVERIFY(std::abs(micro(broken).clock(Clock::update)[i] - micro(straight).clock(Clock::update)[i]) < 1e-6);
  }
}

void TestSeries::wall_time_goes_on_after_a_resume() {
  const MadeRun made{.updates = 40};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(20));
  const double before = run.latest(Clock::seconds);
  run.append({{supervisor_rank, 5, 0, RunStarted{.resumed = true, .resumed_update = 20}}});
  // The ranks of the second start count their time from their own zero.
  std::vector<RunEvent> again = made.events(40, 20);
  double shift = 1e18;
  for (const RunEvent& event : again)
    if (const auto* body = std::get_if<MicroSteps>(&event.body))
      shift = std::min(shift, static_cast<double>(body->begin_ns[0]));
  for (RunEvent& event : again) {
    event.time_ns -= static_cast<std::int64_t>(shift);
    if (auto* body = std::get_if<MicroSteps>(&event.body)) body->begin_ns[0] -= static_cast<std::int64_t>(shift);
    if (auto* body = std::get_if<Sync>(&event.body)) {
      body->begin_ns[0] -= static_cast<std::int64_t>(shift);
      body->end_ns[0] -= static_cast<std::int64_t>(shift);
    }
    if (auto* body = std::get_if<Update>(&event.body)) body->seconds -= shift * 1e-9;
  }
  run.append(again);
  QVERIFY(run.latest(Clock::seconds) > before * 1.9);
  QCOMPARE(run.timeline().lanes().at(0).micro.size(), micro(run).size());
}

void TestSeries::the_plan_is_known_before_the_first_step() {
  const MadeRun made{.updates = 50};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  QCOMPARE(run.plannedLearningRate(Clock::update).size(), std::size_t{50});
  QCOMPARE(run.plannedEnd(Clock::update).value(), 50.0);
  QCOMPARE(run.plannedEnd(Clock::microStep).value(), static_cast<double>(made.plan().totals.micro_steps));
  QVERIFY(run.plannedLearningRate(Clock::seconds).empty());
  run.append(made.events(5));
  QCOMPARE(run.plannedLearningRate(Clock::seconds).size(), std::size_t{50});
}

void TestSeries::the_planned_rate_is_the_used_rate() {
  const MadeRun made{.updates = 50};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(50));
  for (const Clock clock : {Clock::microStep, Clock::update, Clock::epoch}) {
    const auto planned = run.plannedLearningRate(clock);
    const SeriesStore& used = run.series(Metric::learningRate);
    QCOMPARE(planned.size(), used.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
      QVERIFY(std::abs(planned[i].first - used.clock(clock)[i]) < 1e-5);
      QCOMPARE(planned[i].second, used.value(i));
    }
  }
}

void TestSeries::the_window_is_counted() {
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(MadeRun{.ranks = 1}.plan());
  run.append(
      {MadeRun::state("running"), {0, 0, 0, MicroSteps{{1, 2}, {1, 1}, {1, 1}, {4, 4}, {0, 1}, {0, 0}, {0, 0}}}});
  QCOMPARE(run.windowText(), QStringLiteral("2 of 4"));
  QVERIFY(run.progressText().endsWith(QStringLiteral("micro-step 2 of 4")));
}

void TestSeries::the_pace_is_measured_over_all_ranks() {
  const MadeRun made{.updates = 40};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(40));
  const double window = 4.0 * (made.forward + made.backward) + made.collective + made.step;
  QVERIFY(std::abs(run.last().samplesPerSecond - 32.0 / window) < 0.15 * 32.0 / window);
}

void TestSeries::states_and_ends_are_followed() {
  RunSeries run(QStringLiteral("r"), 0);
  run.append({MadeRun::state("running")});
  QVERIFY(run.isLive());
  run.append(
      {{1, 0, 0, RankFailed{.class_name = "peer_lost", .message = "Rank 1 was killed.", .signal = 9, .update = 3}}});
  QCOMPARE(run.problems().size(), std::size_t{1});
  QVERIFY(run.problems()[0].fatal);
  QCOMPARE(run.problems()[0].signal, 9);
  run.append({{supervisor_rank, 0, 0, RunFinished{.outcome = "failed", .updates = 3, .reason = "rank 1 lost"}}});
  QVERIFY(run.state() == RunState::failed);
  QCOMPARE(run.outcome().outcome, QStringLiteral("failed"));
}

void TestSeries::recorded_weights_are_series() {
  RunSeries run(QStringLiteral("r"), 0);
  run.append({{0, 0, 0, Update{.update = 1, .micro_step = 4, .weights = {0.5, -1.0}}},
              {0, 1, 0, Update{.update = 2, .micro_step = 8, .weights = {2.04, -2.0}}}});
  QCOMPARE(run.weights().size(), std::size_t{2});
  QCOMPARE(run.weights()[0]->value(1), 2.04);
  QCOMPARE(run.weights()[1]->value(0), -1.0);
}

void TestSeries::a_cleared_run_can_be_read_again() {
  const MadeRun made{.updates = 12};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(12));
  const QByteArray first = seriesCsv({&run}, 0.0);
  run.clear();
  QVERIFY(!run.hasEvents());
  QVERIFY(micro(run).empty() && updates(run).empty() && run.timeline().empty());
  run.append(made.events(12));
  QCOMPARE(seriesCsv({&run}, 0.0), first);
}

void TestSeries::csv_holds_every_point() {
  const MadeRun made{.updates = 10};
  RunSeries run(QStringLiteral("r"), 0);
  run.setPlan(made.plan());
  run.append(made.events(10));
  const QByteArray csv = seriesCsv({&run}, 0.9);
  const QList<QByteArray> lines = csv.split('\n');
  QVERIFY(lines[0].startsWith("# smoothed: "));
  QVERIFY(
      lines[1].startsWith("run,metric,micro_step,update,sample,token,epoch,seconds,compute_seconds,value,smoothed"));
  const auto micros = static_cast<qsizetype>(micro(run).size());
  QCOMPARE(lines.size(), 2 + micros + 3 * 10 + 1);
  const QByteArray loss = QByteArray::number(updates(run).value(9), 'g', 17);
  bool found = false;
  for (const QByteArray& line : lines) {
    const QList<QByteArray> cells = line.trimmed().split(',');
    if (cells.size() != 11 || cells[1] != "loss" || cells[3] != "10") continue;
    found = cells[9].toDouble() == loss.toDouble();
  }
  QVERIFY(found);
}

void TestSeries::a_very_long_plan_is_laid_out_at_once() {
  RunPlan plan = MadeRun{.updates = 10, .batchesPerEpoch = 10'000}.plan();
  constexpr std::int64_t many = 25'000'000;
  plan.window.max_updates = many;
  plan.totals.updates = many;
  plan.curve.total = many;
  RunSeries run(QStringLiteral("r"), 0);
  QElapsedTimer timer;
  timer.start();
  run.setPlan(plan);
  QVERIFY2(timer.elapsed() < 2000, qPrintable(QString::number(timer.elapsed())));
  const auto planned = run.plannedLearningRate(Clock::update);
  QVERIFY(planned.size() > 10000 && planned.size() < 20010);
  QCOMPARE(planned.front().first, 1.0);
  QCOMPARE(planned.back().first, static_cast<double>(many));
  QCOMPARE(planned[planned.size() / 2].second, lr_at(plan.curve, std::llround(planned[planned.size() / 2].first) - 1));
}

void TestSeries::lost_traces_cost_no_walk_from_the_start() {
  const MadeRun made{.steps = 4, .ranks = 1, .updates = 10000, .batchesPerEpoch = 1000000};
  const std::vector<RunEvent> events = made.events(10000);
  std::vector<RunEvent> traces;
  for (const RunEvent& event : events)
    if (std::holds_alternative<MicroSteps>(event.body)) traces.push_back(event);
  const auto cost = [&](const std::vector<RunEvent>& taken) {
    RunSeries run(QStringLiteral("r"), 0);
    run.setPlan(made.plan());
    RankTracker ranks(made.plan());
    QElapsedTimer timer;
    timer.start();
    run.append(taken);
    ranks.take(taken);
    const auto elapsed = static_cast<double>(timer.nsecsElapsed());
    const std::int64_t newest = std::get<MicroSteps>(taken.back().body).micro_step.back();
    return std::tuple(elapsed, run.last().windowPosition == (newest - 1) % 4 + 1,
                      ranks.ranks().at(0).filled == (newest - 1) % 4 + 1);
  };
  std::vector<RunEvent> lossy;
  for (std::size_t i = 0; i < traces.size(); i += 2) lossy.push_back(traces[i]);
  const auto [whole, placed, filled] = cost(traces);
  const auto [half, placedToo, filledToo] = cost(lossy);
  QVERIFY(placed && filled && placedToo && filledToo);
  QVERIFY2(half < 5.0 * whole, qPrintable(QStringLiteral("%1 ms against %2 ms").arg(half * 1e-6).arg(whole * 1e-6)));
}

void TestSeries::the_window_is_one_for_all_ranks() {
  const MadeRun made{.steps = 4, .ranks = 2, .updates = 3};
  RankTracker ranks(made.plan());
  const auto steps = [](std::int64_t rank, std::int64_t micro) {
    return RunEvent{rank, micro, micro, MicroSteps{{micro}, {1.0}, {100}, {4}, {micro}, {1}, {1}}};
  };
  std::vector<RunEvent> events;
  for (std::int64_t micro = 1; micro <= 4; ++micro) events.push_back(steps(0, micro));
  for (std::int64_t micro = 1; micro <= 6; ++micro) events.push_back(steps(1, micro));
  ranks.take(events);
  // Rank 1 is two micro-steps into update 2, which rank 0 has not begun: nothing of its full bar belongs there.
  QCOMPARE(ranks.window(), 2);
  const auto seen = ranks.inWindow();
  QCOMPARE(seen.at(0).filled, 0);
  QCOMPARE(seen.at(0).window_tokens, 0);
  QCOMPARE(seen.at(1).filled, 2);
  QCOMPARE(seen.at(1).window_tokens, 200);
}

void TestSeries::only_a_new_spec_is_told_as_one() {
  const MadeRun made{.updates = 4};
  RunSeries run(QStringLiteral("r"), 0);
  QSignalSpy told(&run, &RunSeries::specChanged);
  run.setPlan(made.plan());
  run.setPlan(made.plan());
  run.append(made.events(4));
  QCOMPARE(told.count(), 1);
  run.setPlan(MadeRun{.steps = 8, .updates = 4}.plan());
  QCOMPARE(told.count(), 2);
}

QTEST_GUILESS_MAIN(TestSeries)
#include "test_series.moc"
