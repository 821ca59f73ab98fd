// SPDX-License-Identifier: GPL-3.0-or-later
#include <QBuffer>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>

#include "kit/no_value.h"
#include "kit/number_text.h"
#include "made_run.h"
#include "points/smoothing.h"
#include "series/rank_status.h"
#include "series/run_series.h"
#include "series/run_text.h"
#include "series/series_export.h"
#include "support/test_program.h"

namespace test_series {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

QByteArray seriesCsv(const QList<RunSeries*>& runs, double weight) {
  QBuffer out;
  if (!out.open(QIODevice::WriteOnly) || !SeriesSnapshot(runs, weight).writeCsv(out)) qFatal("not written");
  return out.data();
}

QByteArray seriesJson(const QList<RunSeries*>& runs, double weight) {
  QBuffer out;
  if (!out.open(QIODevice::WriteOnly) || !SeriesSnapshot(runs, weight).writeJson(out)) qFatal("not written");
  return out.data();
}

/// A run that has seen the events of its first updates.
struct SeenRun : RunSeries {
  explicit SeenRun(const MadeRun& made, std::int64_t up_to = 0, const char* name = "r")
      : RunSeries(QString::fromLatin1(name), 0) {
    setPlan(made.plan());
    if (up_to > 0) append(made.events(up_to));
  }
};

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
  void every_event_becomes_a_point() {
    const MadeRun made{.updates = 30};
    SeenRun run(made, 30);
    QCOMPARE(micro(run).size(), static_cast<std::size_t>(made.plan().totals.micro_steps));
    QCOMPARE(updates(run).size(), std::size_t{30});
    QCOMPARE(run.series(Metric::learningRate).size(), std::size_t{30});
    QCOMPARE(run.last().update, 30);
    QCOMPARE(run.progressText(), QStringLiteral("update 30 of 30"));
  }

  void a_series_has_points_where_its_value_was_logged() {
    RunSeries run(QStringLiteral("log"), 0);
    const double nan = std::nan("");
    run.append({{0, 0, 0, Update{.update = 1, .micro_step = 1, .loss = 3.0, .lr = 0.1, .grad_norm = nan}},
                {0, 1, 0, Update{.update = 2, .micro_step = 2, .loss = 2.0}},
                {0, 2, 0, Update{.update = 3, .micro_step = 3, .loss = 1.0, .lr = 0.3}},
                // As an earlier version recorded a rate that is not known.
                {0, 3, 0, Update{.update = 4, .micro_step = 4, .loss = 1.0, .lr = nan}}});
    const SeriesStore& rates = run.series(Metric::learningRate);
    QCOMPARE(rates.size(), std::size_t{2});
    QCOMPARE(rates.clock(Clock::update)[1], 3.0);
    QCOMPARE(rates.value(1), 0.3);
    QCOMPARE(rates.marks().size(), std::size_t{0});
    QCOMPARE(run.series(Metric::gradNorm).marks().size(), std::size_t{1});  // that one was logged, and is none
    QCOMPARE(run.series(Metric::updateLoss).size(), std::size_t{4});
    QVERIFY(run.series(Metric::samplesPerSecond).empty());
  }

  void a_micro_step_is_the_mean_over_the_items_of_all_ranks() {
    SeenRun run(MadeRun{});
    run.append({MadeRun{}.microStep(0, 1, 1.0, 300), MadeRun{}.microStep(1, 1, 5.0, 100)});
    QCOMPARE(micro(run).size(), std::size_t{1});
    QCOMPARE(micro(run).value(0), 2.0);
    QCOMPARE(micro(run).clock(Clock::token)[0], 400.0);
    QCOMPARE(micro(run).clock(Clock::sample)[0], 8.0);
  }

  /// Its record has a loss of 0, which means nothing: a number of labelled items says so, and the update's outcome.
  void a_window_without_a_label_has_no_loss() {
    const MadeRun made{.updates = 4, .unlabelled = {1, 3}};
    SeenRun run(made, 4);
    QCOMPARE(updates(run).size(), std::size_t{4});
    QVERIFY(!isMeasured(updates(run).value(0)) && !isMeasured(updates(run).value(2)));
    QVERIFY(isMeasured(updates(run).value(1)) && isMeasured(updates(run).value(3)));
    for (std::size_t i = 0; i < micro(run).size(); ++i) QCOMPARE(isMeasured(micro(run).value(i)), i / 4 % 2 == 1);
    for (const SeriesStore* losses : {&updates(run), &micro(run)}) {
      QVERIFY(losses->marks().empty());  // it is nothing that went wrong
      QVERIFY(losses->range(0, losses->size()).low > 2.0);
      QCOMPARE(losses->countNotPositive(), std::size_t{0});
    }
    QCOMPARE(valueText(updates(run).value(2)), QStringLiteral("–"));
    const SmoothedSeries smoothed(updates(run), 0.5);
    QVERIFY(!isMeasured(smoothed.value(2)));
    QCOMPARE(smoothed.value(3), (0.5 * updates(run).value(1) + updates(run).value(3)) / 1.5);
    // In a file it is an empty cell, smoothed or not.
    int empty = 0;
    for (const QByteArray& line : seriesCsv({&run}, 0.5).split('\n')) {
      const QList<QByteArray> cells = line.trimmed().split(',');
      if (cells.size() < 13 || (cells[2] != "loss" && cells[2] != "micro_loss")) continue;
      QCOMPARE(cells[10].isEmpty(), cells[11].isEmpty());
      QVERIFY(cells[10] != "0" && cells[10] != "nan");
      empty += cells[10].isEmpty() ? 1 : 0;
    }
    QCOMPARE(empty, 2 + 2 * 4);
    const QJsonValue written = QJsonDocument::fromJson(seriesJson({&run}, 0.0))[QLatin1String("runs")][0];
    const QJsonValue losses = written[QLatin1String("series")][QLatin1String("loss")][QLatin1String("value")];
    QVERIFY(losses[0].isNull() && losses[1].isDouble() && losses[2].isNull());
  }

  void the_last_loss_is_that_of_a_window_with_a_label() {
    const MadeRun made{.updates = 4, .unlabelled = {1, 3}};
    SeenRun run(made, 3);
    QCOMPARE(run.last().update, 3);
    QCOMPARE(run.last().loss, updates(run).value(1));
    QVERIFY(isMeasured(run.last().microLoss));
    run.append({{supervisor_rank, 5, 0, RunStarted{.resumed = true, .resumed_update = 3}}});
    QCOMPARE(run.last().loss, updates(run).value(1));
    run.append({{supervisor_rank, 6, 0, RunStarted{.resumed = true, .resumed_update = 1}}});
    QVERIFY(std::isnan(run.last().loss) && isMeasured(run.last().loss));
  }

  void parts_of_a_loss_have_the_same_gaps() {
    RunSeries run(QStringLiteral("bert"), 0);
    run.append(
        {{0, 0, 0,
          Update{.update = 1, .micro_step = 1, .outcome = StepOutcome::skipped_empty, .losses = {{"lm loss", 0.0}}}},
         {0, 1, 1, Update{.update = 2, .micro_step = 2, .losses = {{"lm loss", 3.0}}}}});
    const SeriesStore& part = run.lossParts().at(QStringLiteral("lm loss"))->values;
    QVERIFY(!isMeasured(part.value(0)));
    QCOMPARE(part.value(1), 3.0);
  }

  void a_micro_step_waits_for_the_slowest_rank() {
    SeenRun run(MadeRun{});
    run.append({MadeRun{}.microStep(0, 1, 1.0, 1), MadeRun{}.microStep(0, 2, 2.0, 1)});
    QVERIFY(micro(run).empty());
    run.append({MadeRun{}.microStep(1, 1, 3.0, 1)});
    QCOMPARE(micro(run).size(), std::size_t{1});
    QCOMPARE(micro(run).value(0), 2.0);
  }

  void ranks_may_report_in_any_order() {
    const MadeRun made{.ranks = 3, .updates = 20};
    // Each rank keeps its own order; between ranks anything may happen.
    std::map<std::int64_t, std::vector<RunEvent>> perRank;
    for (const RunEvent& event : made.events(20)) perRank[event.rank].push_back(event);
    SeenRun expected(made, 20, "a");
    SeenRun shuffled(made, 0, "b");
    for (const std::int64_t rank : {2, 0, 1}) shuffled.append(perRank[rank]);
    QCOMPARE(micro(shuffled).size(), micro(expected).size());
    for (std::size_t i = 0; i < micro(expected).size(); ++i) {
      QVERIFY(std::abs(micro(shuffled).value(i) - micro(expected).value(i)) < 1e-12);
      QCOMPARE(micro(shuffled).clock(Clock::sample)[i], micro(expected).clock(Clock::sample)[i]);
      QCOMPARE(micro(shuffled).clock(Clock::update)[i], micro(expected).clock(Clock::update)[i]);
    }
  }

  void a_rank_that_never_reports_does_not_hold_the_others_forever() {
    SeenRun run(MadeRun{.updates = 100000});
    std::vector<RunEvent> events;
    constexpr int count = 3000;
    AccumulationWindow window(MadeRun{.updates = 100000}.plan().window);
    for (int m = 1; m <= count; ++m)
      events.push_back({0, m, 0, MadeRun::microSteps(window.next().value(), 1.0, 1, 4, m, 0)});
    run.append(events);
    QCOMPARE(micro(run).size(), count - MicroStepJoin::patience);
    run.append({{supervisor_rank, 1, 0, RunFinished{.outcome = "failed"}}});
    QCOMPARE(micro(run).size(), std::size_t{count});
  }

  void all_clocks_agree_at_a_boundary() {
    const MadeRun made{.updates = 25};
    SeenRun run(made, 25);
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

  void every_clock_rises() {
    const MadeRun made{.steps = 5, .updates = 40, .batchesPerEpoch = 13};
    SeenRun run(made, 40);
    for (const Clock clock : allClocks)
      for (std::size_t i = 1; i < micro(run).size(); ++i)
        QVERIFY2(micro(run).clock(clock)[i] > micro(run).clock(clock)[i - 1], qPrintable(clockKey(clock)));
  }

  void without_a_plan_clocks_are_still_told() {
    const MadeRun made{.updates = 20, .batchesPerEpoch = 80};
    RunSeries run(QStringLiteral("r"), 0);
    run.setSpec(made.plan().spec);
    run.append(made.events(20));
    QCOMPARE(micro(run).size(), std::size_t{80});
    QCOMPARE(micro(run).clock(Clock::update)[79], 20.0);
    QCOMPARE(micro(run).clock(Clock::update)[77], 19.5);
    QCOMPARE(micro(run).clock(Clock::sample)[79], 640.0);
  }

  void batches_and_single_events_give_the_same_series() {
    const MadeRun made{.updates = 15};
    SeenRun whole(made, 15, "a");
    SeenRun pieces(made, 0, "b");
    for (const RunEvent& event : made.events(15)) pieces.append({event});
    QCOMPARE(seriesCsv({&pieces}, 0.0).replace("\nb,", "\na,"), seriesCsv({&whole}, 0.0));
  }

  void one_batch_is_one_signal() {
    const MadeRun made{.updates = 10};
    SeenRun run(made);
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

  void values_that_are_not_finite_are_kept_and_marked() {
    MadeRun made{.ranks = 1, .updates = 5};
    made.loss = [](std::int64_t m, std::int64_t) { return m == 7 ? std::numeric_limits<double>::quiet_NaN() : 1.0; };
    SeenRun run(made, 5);
    QCOMPARE(micro(run).marks().size(), std::size_t{1});
    QCOMPARE(micro(run).marks()[0].index, std::size_t{6});
    QVERIFY(std::isnan(micro(run).value(6)));
    QCOMPARE(updates(run).marks().size(), std::size_t{1});
  }

  void a_resumed_run_continues_after_its_checkpoint() {
    const MadeRun made{.updates = 30};
    SeenRun straight(made, 30, "a");
    SeenRun broken(made, 17, "b");
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

  void wall_time_goes_on_after_a_resume() {
    const MadeRun made{.updates = 40};
    SeenRun run(made, 20);
    const double before = run.latest(Clock::seconds);
    run.append({{supervisor_rank, 5, 0, RunStarted{.resumed = true, .resumed_update = 20}}});
    // The ranks of the second start count their time from their own zero.
    std::vector<RunEvent> again = made.events(40, 20);
    std::int64_t shift = std::numeric_limits<std::int64_t>::max();
    for (const RunEvent& event : again)
      if (const auto* body = std::get_if<Operations>(&event.body)) shift = std::min(shift, body->begin_ns[0]);
    const auto move_back = [shift](std::vector<std::int64_t>& times) {
      for (std::int64_t& time : times) time -= shift;
    };
    for (RunEvent& event : again) {
      event.time_ns -= shift;
      if (auto* body = std::get_if<MicroSteps>(&event.body)) move_back(body->end_ns);
      if (auto* body = std::get_if<Operations>(&event.body))
        for (auto* times : {&body->begin_ns, &body->end_ns}) move_back(*times);
      if (auto* body = std::get_if<Sync>(&event.body))
        for (auto* times : {&body->begin_ns, &body->end_ns}) move_back(*times);
      if (auto* body = std::get_if<Update>(&event.body)) body->seconds -= static_cast<double>(shift) * 1e-9;
    }
    run.append(again);
    QVERIFY(run.latest(Clock::seconds) > before * 1.9);
    QCOMPARE(run.timeline().lanes().at(0).micro.size(), micro(run).size());
  }

  void the_plan_is_known_before_the_first_step() {
    const MadeRun made{.updates = 50};
    SeenRun run(made);
    QTRY_COMPARE(run.plannedLearningRate(Clock::update).size(), std::size_t{50});
    QCOMPARE(run.plannedEnd(Clock::update).value(), 50.0);
    QCOMPARE(run.plannedEnd(Clock::microStep).value(), static_cast<double>(made.plan().totals.micro_steps));
    QVERIFY(run.plannedLearningRate(Clock::seconds).empty());
    run.append(made.events(5));
    QCOMPARE(run.plannedLearningRate(Clock::seconds).size(), std::size_t{50});
  }

  void the_planned_rate_is_the_used_rate() {
    const MadeRun made{.updates = 50};
    SeenRun run(made, 50);
    QTRY_VERIFY(!run.plannedLearningRate(Clock::update).empty());
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

  void a_very_long_plan_does_not_hold_up_the_window() {
    RunPlan plan = MadeRun{.updates = 10, .batchesPerEpoch = 10'000}.plan();
    constexpr std::int64_t many = 25'000'000;
    plan.window.max_updates = many;
    plan.totals.updates = many;
    plan.curve.total = many;
    RunSeries run(QStringLiteral("r"), 0);
    // The walk is a job: what a plan says comes with a signal, through the event loop, and never before.
    QSignalSpy changed(&run, &RunSeries::changed);
    run.setPlan(plan);
    QCOMPARE(changed.count(), 1);
    QVERIFY(run.plannedLearningRate(Clock::update).empty());
    QTRY_COMPARE(changed.count(), 2);
    const auto planned = run.plannedLearningRate(Clock::update);
    QVERIFY(planned.size() > 10000 && planned.size() < 20010);
    QCOMPARE(planned.front().first, 1.0);
    QCOMPARE(planned.back().first, static_cast<double>(many));
    QCOMPARE(planned[planned.size() / 2].second,
             lr_at(plan.curve, std::llround(planned[planned.size() / 2].first) - 1));
  }

  void lost_traces_leave_later_micro_steps_in_their_windows() {
    const MadeRun made{.steps = 4, .ranks = 1, .updates = 50, .batchesPerEpoch = 1000000};
    std::vector<RunEvent> lossy;
    std::int64_t count = 0;
    for (const RunEvent& event : made.events(50))
      if (std::holds_alternative<MicroSteps>(event.body) && count++ % 3 != 0) lossy.push_back(event);
    SeenRun run(made);
    RankTracker ranks(made.plan());
    for (const RunEvent& event : lossy) {
      run.append({event});
      ranks.take({event});
      const std::int64_t newest = std::get<MicroSteps>(event.body).micro_step.back();
      QCOMPARE(run.last().windowPosition, (newest - 1) % 4 + 1);
      QCOMPARE(ranks.ranks().at(0).filled, (newest - 1) % 4 + 1);
      QCOMPARE(ranks.ranks().at(0).window, (newest - 1) / 4 + 1);
    }
  }

  /// As at the start of a float16 run: the first windows overflow while the scale is found.
  void skipped_updates_leave_the_micro_loss_on_its_updates() {
    const MadeRun made{.steps = 4, .ranks = 2, .updates = 30};
    std::vector<RunEvent> events = made.events(30);
    for (RunEvent& event : events)
      if (auto* update = std::get_if<Update>(&event.body); update != nullptr && update->update <= 7)
        update->outcome = StepOutcome::skipped_overflow;
    SeenRun run(made);
    for (const RunEvent& event : events) run.append({event});
    AccumulationWindow window(made.plan().window);
    for (std::size_t i = 0; i < micro(run).size(); ++i) {
      const MicroPlan plan = window.next().value();
      const double part = static_cast<double>(plan.position + 1) / static_cast<double>(plan.window_size);
      QVERIFY(std::abs(micro(run).clock(Clock::update)[i] - (static_cast<double>(plan.window) + part)) < 1e-9);
    }
    QCOMPARE(run.latest(Clock::update), 30.0);
  }

  void the_window_is_one_for_all_ranks() {
    const MadeRun made{.steps = 4, .ranks = 2, .updates = 3};
    RankTracker ranks(made.plan());
    const auto steps = [&made](std::int64_t rank, std::int64_t micro) { return made.microStep(rank, micro, 1.0, 100); };
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

  void only_a_new_spec_is_told_as_one() {
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

  void the_window_is_counted() {
    SeenRun run(MadeRun{.ranks = 1});
    run.append({MadeRun::state("running"), MadeRun{}.microStep(0, 1, 1.0, 1), MadeRun{}.microStep(0, 2, 1.0, 1)});
    QCOMPARE(run.windowText(), QStringLiteral("2 of 4"));
    QVERIFY(run.progressText().endsWith(QStringLiteral("micro-step 2 of 4")));
  }

  void the_pace_is_measured_over_all_ranks() {
    const MadeRun made{.updates = 40};
    SeenRun run(made, 40);
    const double window = 4.0 * (made.forward + made.backward) + made.collective + made.step;
    QVERIFY(std::abs(run.last().samplesPerSecond - 32.0 / window) < 0.15 * 32.0 / window);
  }

  /// 0.103 s an update, of 32 samples. A paused run is reported as such, and again when it continues.
  void a_pause_is_no_part_of_the_pace_data() {
    QTest::addColumn<std::vector<std::int64_t>>("pausedAfter");
    QTest::newRow("before the first update") << std::vector<std::int64_t>{0};
    QTest::newRow("once") << std::vector<std::int64_t>{35};
    QTest::newRow("before the newest updates") << std::vector<std::int64_t>{10};
    QTest::newRow("in every update") << [] {
      std::vector<std::int64_t> all(40);
      std::iota(all.begin(), all.end(), 0);
      return all;
    }();
  }
  void a_pause_is_no_part_of_the_pace() {
    QFETCH(std::vector<std::int64_t>, pausedAfter);
    const MadeRun made{.updates = 80, .batchesPerEpoch = 400};
    constexpr double length = 40.0;
    SeenRun run(made);
    const auto state = [&](const char* name, double seconds) {
      run.append({{supervisor_rank, 1, MadeRun::ns(seconds), StateChanged{.state = name}}});
    };
    double paused = 0.0;
    double end = 0.0;
    for (std::int64_t update = 0; update < 40; ++update) {
      if (std::ranges::count(pausedAfter, update) > 0) {
        state("paused", end + paused);
        paused += length;
        state("running", end + paused);
      }
      std::vector<RunEvent> events = made.events(update + 1, update);
      for (RunEvent& event : events) {
        auto* body = std::get_if<Update>(&event.body);
        if (!body) continue;
        end = body->seconds;
        body->seconds += paused;
        event.time_ns = MadeRun::ns(body->seconds);
      }
      std::erase_if(events, [](const RunEvent& event) { return !std::holds_alternative<Update>(event.body); });
      run.append(events);
    }
    QVERIFY(std::abs(run.last().seconds - end - paused) < 1e-3);
    QVERIFY(std::abs(run.last().unpausedSeconds - end) < 1e-3);
    const double each = 4.0 * (made.forward + made.backward) + made.collective + made.step;
    QVERIFY(std::abs(run.last().samplesPerSecond * each / 32.0 - 1.0) < 0.01);
    QVERIFY(std::abs(secondsLeft(run).value() - end) < 1e-3);  // half of it is done
    // Back at update 20, the pauses after it are forgotten.
    const double then = updates(run).clock(Clock::seconds)[19];
    run.append({{supervisor_rank, 0, 0, RunStarted{.run = "made", .resumed = true, .resumed_update = 20}}});
    RunEvent next = made.events(21, 20).back();
    std::get<Update>(next.body).seconds = then + each;
    next.time_ns = MadeRun::ns(then + each);
    run.append({next});
    QVERIFY(std::abs(run.last().unpausedSeconds - 0.1 - 21.0 * each) < 1e-3);
  }

  void states_and_ends_are_followed() {
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

  /// Views update once per batch; a state that existed only in between is reported too.
  void a_state_that_comes_back_within_a_batch_has_moved() {
    RunReport report;
    report.take(MadeRun::state("running"));
    QVERIFY(report.takeStateMoved());
    for (const char* state : {"paused", "running"}) report.take(MadeRun::state(state));
    QVERIFY(report.state() == RunState::running);
    QVERIFY(report.takeStateMoved());
    report.take(MadeRun::state("running"));
    QVERIFY(!report.takeStateMoved());
  }

  void recorded_weights_are_series() {
    RunSeries run(QStringLiteral("r"), 0);
    run.append({{0, 0, 0, Update{.update = 1, .micro_step = 4, .weights = {0.5, -1.0}}},
                {0, 1, 0, Update{.update = 2, .micro_step = 8, .weights = {2.04, -2.0}}}});
    QCOMPARE(run.weights().size(), std::size_t{2});
    QCOMPARE(run.weights()[0]->value(1), 2.04);
    QCOMPARE(run.weights()[1]->value(0), -1.0);
  }

  /// Update u of a run that measures everything; its first update is left out.
  static RunEvent measured(std::int64_t u) {
    return {0, u, MadeRun::ns(double(u)),
            Update{.update = u,
                   .micro_step = 4 * u,
                   .loss = 3.0,
                   .outcome = u == 1 ? StepOutcome::skipped_overflow : StepOutcome::updated,
                   .losses = {{"lm loss", 2.0 + 0.125 * double(u)}, {"sop loss", 0.5}},
                   .loss_scale = u == 1 ? 512.0 : 1024.0,
                   .update_norm = u == 1 ? 0.0 : 0.25 * double(u),
                   .parameter_norm = 10.0 + double(u),
                   .gradient_zeros = 7,
                   .scalars = {{"accuracy", 0.25 * double(u)}}}};
  }

  void what_only_some_runs_measure_is_a_series_where_it_is() {
    const SeenRun without(MadeRun{.updates = 3}, 3);
    RunSeries run(QStringLiteral("r"), 0);
    run.append(
        {measured(1), measured(2), measured(3), {0, 4, 0, Evaluation{.update = 3, .losses = {{"lm loss", 1.5}}}}});
    for (const Metric metric : {Metric::lossScale, Metric::updateNorm, Metric::parameterNorm, Metric::gradientZeros}) {
      QVERIFY2(without.series(metric).empty(), metricKey(metric));
      QCOMPARE(run.series(metric).size(), std::size_t{3});
    }
    QCOMPARE(run.series(Metric::updateNorm).value(2), 0.75);
    QCOMPARE(run.series(Metric::updateNorm).clock(Clock::update)[2], 3.0);
    QCOMPARE(run.series(Metric::gradientZeros).value(0), 7.0);
    QCOMPARE(run.skippedUpdates().size(), std::size_t{1});
    QCOMPARE(run.skippedUpdates().value(0), 512.0);
    QVERIFY(without.lossParts().empty());
    QCOMPARE(run.lossParts().size(), std::size_t{2});
    QCOMPARE(run.lossParts().at(QStringLiteral("lm loss"))->values.value(1), 2.25);
    QCOMPARE(run.evaluationParts().at(QStringLiteral("lm loss"))->values.value(0), 1.5);
    const QByteArray csv = seriesCsv({&run}, 0.0);
    for (const char* key : {",loss_scale,", ",update_norm,", ",parameter_norm,", ",gradient_zeros,", ",loss.sop loss,",
                            ",evaluation_loss.lm loss,", ",skipped_update,"})
      QVERIFY2(csv.contains(key), key);
  }

  void a_resumed_run_measures_its_updates_again() {
    RunSeries run(QStringLiteral("r"), 0);
    const auto evaluated = [](std::int64_t u) {
      return RunEvent{0, u, 0, Evaluation{.update = u, .losses = {{"lm loss", 1.5}}, .scalars = {{"accuracy", 0.5}}}};
    };
    run.append({measured(1), evaluated(1), measured(2), measured(3), evaluated(3)});
    run.append({{supervisor_rank, 0, 0, RunStarted{.resumed = true, .resumed_update = 1}}, measured(2)});
    QCOMPARE(run.series(Metric::lossScale).size(), std::size_t{2});
    QCOMPARE(run.skippedUpdates().size(), std::size_t{1});
    QCOMPARE(run.lossParts().at(QStringLiteral("sop loss"))->values.size(), std::size_t{2});
    QCOMPARE(run.scalars().at(QStringLiteral("accuracy"))->values.size(), std::size_t{2});
    QCOMPARE(run.evaluationParts().at(QStringLiteral("lm loss"))->values.size(), std::size_t{1});
    QCOMPARE(run.evaluationScalars().at(QStringLiteral("accuracy"))->values.size(), std::size_t{1});
    run.clear();
    QVERIFY(run.series(Metric::lossScale).empty() && run.skippedUpdates().empty());
    for (const PartSeries* parts : {&run.lossParts(), &run.evaluationParts(), &run.scalars(), &run.evaluationScalars()})
      for (const auto& [name, part] : *parts) QVERIFY2(part->values.empty(), qPrintable(name));
  }

  void a_cleared_run_can_be_read_again() {
    const MadeRun made{.updates = 12};
    SeenRun run(made, 12);
    const QByteArray first = seriesCsv({&run}, 0.0);
    run.clear();
    QVERIFY(!run.hasEvents());
    QVERIFY(micro(run).empty() && updates(run).empty() && run.timeline().empty());
    run.append(made.events(12));
    QCOMPARE(seriesCsv({&run}, 0.0), first);
  }

  void csv_holds_every_point() {
    const MadeRun made{.updates = 10};
    SeenRun run(made, 10);
    const QList<QByteArray> lines = seriesCsv({&run}, 0.9).split('\n');
    const QList<QByteArray> raw = seriesCsv({&run}, 0.0).split('\n');
    // A reader takes the first line for the header, smoothed or not.
    for (const QList<QByteArray>* each : {&lines, &raw})
      QCOMPARE(each->first().trimmed(),
               QByteArray("run_id,run,metric,micro_step,update,sample,token,epoch,seconds,compute_seconds,value,"
                          "smoothed,smoothing_weight,smoothing_formula"));
    QVERIFY(raw[1].trimmed().endsWith(",,,"));
    const auto micros = static_cast<qsizetype>(micro(run).size());
    QCOMPARE(lines.size(), 1 + micros + 5 * 10 + 1);
    // Of the formula, written out: the mean of the ten losses, each with nine tenths of the weight of the next.
    double sum = 0.0, weights = 0.0;
    for (std::size_t i = 0; i < 10; ++i) {
      const double weight = std::pow(0.9, 9.0 - static_cast<double>(i));
      sum += weight * updates(run).value(i);
      weights += weight;
    }
    const auto is_last_loss = [&](const QByteArray& line) {
      const QList<QByteArray> cells = line.trimmed().split(',');
      return cells.size() > 12 && cells[0] == run.id().toUtf8() && cells[2] == "loss" && cells[4] == "10";
    };
    const auto line = std::ranges::find_if(lines, is_last_loss);
    QVERIFY(line != lines.end());
    const QList<QByteArray> cells = line->trimmed().split(',');
    QCOMPARE(cells[10].toDouble(), updates(run).value(9));
    QVERIFY2(std::abs(cells[11].toDouble() - sum / weights) < 1e-12, cells[11].constData());
    QCOMPARE(cells[12], QByteArray("0.9"));
    QVERIFY2(line->trimmed().endsWith(",\"" + smoothingFormula(0.9).toUtf8() + '"'), line->constData());
  }

  void a_parts_name_is_what_its_module_says() {
    RunSeries run(QStringLiteral("r"), 0);
    run.append({{0, 1, 0, Update{.update = 1, .micro_step = 4, .loss = 3.0, .losses = {{"a,\"b\"", 2.5}}}}});
    QVERIFY(seriesCsv({&run}, 0.0).contains(",\"loss.a,\"\"b\"\"\","));
    const QJsonObject json = QJsonDocument::fromJson(seriesJson({&run}, 0.0)).object();
    const QJsonValue series = json[QStringLiteral("runs")].toArray()[0][QStringLiteral("series")];
    QCOMPARE(series[QStringLiteral("loss.a,\"b\"")][QStringLiteral("value")].toArray(), QJsonArray{2.5});
  }

  /// By another thread while the run grows, goes back to an earlier update and is cleared.
  void a_snapshot_stays_what_it_was() {
    const MadeRun made{.updates = 3000};
    SeenRun run(made, 1500);
    const QByteArray expected = seriesCsv({&run}, 0.9);
    const SeriesSnapshot snapshot({&run}, 0.9);
    QBuffer out;
    QVERIFY(out.open(QIODevice::WriteOnly));
    bool written = false;
    std::thread writer([&] { written = snapshot.writeCsv(out); });
    run.append(made.events(3000, 1500));
    run.clear();
    run.append(made.events(700));
    writer.join();
    QVERIFY(written);
    QCOMPARE(out.data(), expected);
    QBuffer again;
    QVERIFY(again.open(QIODevice::WriteOnly) && snapshot.writeCsv(again));
    QCOMPARE(again.data(), expected);
    double done = 2.0;
    QVERIFY(!snapshot.writeJson(again, [&](double part) { return done = part, false; }));
    QVERIFY(done < 1.0);
  }

  void json_holds_every_point_and_what_differs() {
    MadeRun made{.updates = 10};
    made.loss = [](std::int64_t m, std::int64_t) { return m <= 4 ? std::nan("") : 2.0; };
    SeenRun few(made, 10);
    made.steps = 8;
    SeenRun many(made, 3);
    few.setName(QStringLiteral("Demo"));
    many.setName(QStringLiteral("Demo"));
    const QJsonObject json = QJsonDocument::fromJson(seriesJson({&few, &many}, 0.9)).object();
    QCOMPARE(json[QStringLiteral("smoothing")][QStringLiteral("weight")].toDouble(), 0.9);
    QVERIFY(json[QStringLiteral("smoothing")][QStringLiteral("formula")].toString().startsWith(QStringLiteral("s(t)")));
    const QJsonArray runs = json[QStringLiteral("runs")].toArray();
    QCOMPARE(runs.size(), 2);
    QVERIFY(runs[1][QStringLiteral("name")].toString().contains(QStringLiteral("N = 8")));
    QCOMPARE(runs[1][QStringLiteral("differing")][QStringLiteral("accumulation.steps")].toString(),
             QStringLiteral("8"));
    const QJsonValue loss = runs[0][QStringLiteral("series")][QStringLiteral("loss")];
    const QJsonArray values = loss[QStringLiteral("value")].toArray();
    QCOMPARE(values.size(), 10);
    QCOMPARE(values[0].toString(), QStringLiteral("nan"));
    QCOMPARE(values[9].toDouble(), 2.0);
    QCOMPARE(loss[QStringLiteral("smoothed")].toArray().last().toDouble(), 2.0);
    QCOMPARE(loss[QStringLiteral("update")].toArray().last().toDouble(), 10.0);
  }

  void throughput_and_memory_are_series() {
    const MadeRun made{.updates = 10};
    SeenRun run(made, 10);
    const SeriesStore& pace = run.series(Metric::samplesPerSecond);
    QCOMPARE(pace.size(), std::size_t{10});
    QCOMPARE(pace.value(9), run.last().samplesPerSecond);
    QVERIFY(pace.value(9) > 0.0);
    run.append({{0, -1, MadeRun::ns(5.0), Gauge{.rss_bytes = 3 << 20}},
                {1, -1, MadeRun::ns(5.0), Gauge{.rss_bytes = 3 << 20, .device_bytes = 7 << 20}}});
    QCOMPARE(run.memory().size(), std::size_t{2});
    QCOMPARE(run.memory().at(0)->mebibytes.value(0), 3.0);
    QCOMPARE(run.memory().at(1)->mebibytes.value(0), 7.0);
    QCOMPARE(run.memory().at(0)->clocks[Clock::seconds][0], 5.0);
    QCOMPARE(run.memory().at(0)->clocks[Clock::update][0], 10.0);
    QVERIFY(seriesCsv({&run}, 0.0).contains("memory_mib.rank1"));
  }
};

ACCRUE_TEST_MAIN(TestSeries)

}  // namespace test_series
#include "test_series.moc"
