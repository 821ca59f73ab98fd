// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs side by side, and runs in groups.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <memory>

#include "kit/no_value.h"
#include "made_run.h"
#include "series/group_curve.h"
#include "series/run_groups.h"
#include "series/run_pair.h"
#include "series/run_series.h"
#include "support/test_program.h"

namespace test_run_pair {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

std::unique_ptr<RunSeries> trained(const MadeRun& made, const QString& id = QStringLiteral("run")) {
  auto run = std::make_unique<RunSeries>(id, 0);
  run->setPlan(made.plan());
  run->append(made.events(made.updates));
  return run;
}

QString sentenceOf(const RunSeries& first, const RunSeries& second) {
  return partingSentence(first, second, comparisonOf(first, second));
}

/// A log of a loss at so many steps, without a count of samples: 3 less a hundredth of the step, and from `apart` on
/// one more.
std::unique_ptr<RunSeries> logged(std::int64_t every, std::int64_t last, std::int64_t apart = 1'000'000) {
  auto run = std::make_unique<RunSeries>(QStringLiteral("every %1").arg(every), 0);
  for (std::int64_t step = every; step <= last; step += every) {
    const double loss = 3.0 - static_cast<double>(step) / 100.0 + (step >= apart ? 1.0 : 0.0);
    run->append({{supervisor_rank, 0, 0, Update{.update = step, .micro_step = step, .loss = loss}}});
  }
  return run;
}

/// A finished run with this last loss.
std::unique_ptr<RunSeries> finished(std::int64_t steps, std::int64_t seed, double loss) {
  auto run = std::make_unique<RunSeries>(QStringLiteral("run-%1-%2").arg(steps).arg(seed), 0);
  RunPlan plan = MadeRun{.steps = steps, .updates = 1}.plan();
  plan.spec.run.name = "toy, seed " + std::to_string(seed);
  plan.spec.run.seed = seed;
  run->setPlan(plan);
  run->append({{0, 0, 0, Update{.update = 1, .micro_step = 1, .loss = loss, .reason = "full"}},
               {supervisor_rank, 1, 0, RunFinished{.outcome = "finished", .updates = 1, .loss = loss}}});
  return run;
}

/// A finished run with a loss for each of these updates.
std::unique_ptr<RunSeries> seeded(std::int64_t seed, const std::vector<std::pair<std::int64_t, double>>& losses) {
  auto run = std::make_unique<RunSeries>(QStringLiteral("seed-%1").arg(seed), static_cast<int>(seed));
  RunPlan plan = MadeRun{}.plan();
  plan.spec.run.name = "toy";
  plan.spec.run.seed = seed;
  run->setPlan(plan);
  for (const auto& [update, loss] : losses) {
    const double seconds = static_cast<double>(update * seed);
    run->append({{0, 0, MadeRun::ns(seconds),
                  Update{.update = update,
                         .micro_step = 4 * update,
                         .samples = 32 * update,
                         .loss = loss,
                         .seconds = seconds,
                         .reason = "full"}}});
  }
  run->append({{supervisor_rank, 1, 0, RunFinished{.outcome = "finished"}}});
  return run;
}

}  // namespace

class TestRunPair : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void runs_of_one_spec_are_equal_in_every_bit() {
    const auto first = trained({});
    const auto second = trained({});
    QVERIFY(changedKeys(*first, *second).empty());
    QCOMPARE(comparisonOf(*first, *second).points.size(), std::size_t{40});
    QVERIFY(!comparisonOf(*first, *second).distance.parting);
    QVERIFY(sentenceOf(*first, *second).contains(QStringLiteral("every bit")));
  }

  void they_part_at_the_update_that_differs_first() {
    const auto first = trained({});
    MadeRun other;
    other.loss = [](std::int64_t m, std::int64_t rank) {
      return MadeRun().loss(m, rank) + (m > 4 * 12 ? 0.5 : 0.0);  // from the 13th window of four on
    };
    const auto second = trained(other);
    const PairComparison compared = comparisonOf(*first, *second);
    const auto parting = partingOf(*first, compared);
    QVERIFY(parting);
    // An epoch of 22 batches has windows of 4, 4, 4, 4, 4 and 2: micro-step 49 is in the 14th.
    QCOMPARE((*parting)[Clock::update], 14.0);
    QVERIFY(std::abs(compared.distance.parting->second - compared.distance.parting->first) > 0.1);
    QCOMPARE(compared.distance.noise, 0.0);
  }

  void what_is_subtracted_from_what_is_said() {
    const auto first = trained({});
    MadeRun other;
    other.loss = [](std::int64_t m, std::int64_t rank) { return MadeRun().loss(m, rank) + (m > 48 ? 0.5 : 0.0); };
    const auto second = trained(other);
    first->setName(QStringLiteral("A"));
    second->setName(QStringLiteral("B"));
    const QString higher = sentenceOf(*first, *second);
    QVERIFY2(higher.contains(QStringLiteral("the difference, B \u2212 A, is 0.")), qPrintable(higher));
    const QString lower = sentenceOf(*second, *first);
    QVERIFY2(lower.contains(QStringLiteral("the difference, A \u2212 B, is \u22120.")), qPrintable(lower));
  }

  void runs_of_different_n_are_compared_where_both_report() {
    const auto first = trained({.steps = 4, .updates = 20, .batchesPerEpoch = 80});
    const auto second = trained({.steps = 8, .updates = 10, .batchesPerEpoch = 80});
    QCOMPARE(comparisonOf(*first, *second).points.size(), std::size_t{10});
    QCOMPARE(changeTexts(*first, *second).size(), 1);
    QVERIFY(changeTexts(*first, *second).first().endsWith(QStringLiteral("4 \u2192 8")));
  }

  void a_few_common_updates_are_not_called_noise() {
    const auto first = trained({.updates = 3});
    MadeRun other{.updates = 3};
    other.loss = [](std::int64_t m, std::int64_t rank) { return MadeRun().loss(m, rank) + 0.5; };
    const auto second = trained(other);
    QCOMPARE(comparisonOf(*first, *second).points.size(), std::size_t{3});
    QVERIFY(!comparisonOf(*first, *second).distance.parting);
    QVERIFY(sentenceOf(*first, *second).contains(QStringLiteral("too few to judge")));
  }

  void runs_without_a_common_sample_count_say_so() {
    const auto first = trained({.updates = 3});
    const auto second = trained({.updates = 3, .microBatch = 1000});
    QCOMPARE(comparisonOf(*first, *second).points.size(), std::size_t{0});
    QVERIFY(sentenceOf(*first, *second).contains(QStringLiteral("cannot be compared")));
  }

  /// The same line at every 10 and every 20 steps, and one that leaves it.
  void logs_that_count_no_samples_are_compared_at_equal_updates() {
    const auto often = logged(10, 200), seldom = logged(20, 400), other = logged(20, 400, 140);
    QCOMPARE(comparisonOf(*often, *seldom).points.size(), std::size_t{10});
    QVERIFY(!comparisonOf(*often, *seldom).distance.first_divergence);
    QVERIFY(sentenceOf(*often, *seldom).contains(QStringLiteral("equal in every bit at all 10 updates")));
    const PairComparison apart = comparisonOf(*often, *other);
    QCOMPARE(apart.clock, ComparisonClock::updates);
    QCOMPARE((*partingOf(*often, apart))[Clock::update], 140.0);
    const QString said = sentenceOf(*often, *other);
    QVERIFY2(said.startsWith(QStringLiteral("The losses part at update 140 (the runs do not both count samples)")),
             qPrintable(said));
    const auto three = [](const std::vector<double>& losses) {
      auto run = std::make_unique<RunSeries>(QStringLiteral("three"), 0);
      for (std::int64_t step = 1; step <= 3; ++step)
        run->append({{supervisor_rank, 0, 0,
                      Update{.update = step, .micro_step = step, .loss = losses[std::size_t(step) - 1]}}});
      return run;
    };
    const QString first = sentenceOf(*three({3, 2, 1}), *three({9, 7, 1}));
    QVERIFY2(first.startsWith(QStringLiteral("The losses first differ at update 1: ")) &&
                 first.contains(QStringLiteral("is 6")) && first.contains(QStringLiteral("at the same update 3 times")),
             qPrintable(first));
    const auto counted = trained({.updates = 40});
    QCOMPARE(comparisonOf(*counted, *often).clock, ComparisonClock::updates);
  }

  void seeds_of_one_set_up_are_a_group() {
    std::vector<std::unique_ptr<RunSeries>> runs;
    for (const double loss : {1.0, 1.1, 0.9}) runs.push_back(finished(4, static_cast<std::int64_t>(runs.size()), loss));
    for (const double loss : {2.0, 2.1, 1.9}) runs.push_back(finished(8, static_cast<std::int64_t>(runs.size()), loss));
    runs.push_back(finished(16, 0, 3.0));  // one seed is no group
    QList<RunSeries*> all;
    for (const auto& run : runs) all.append(run.get());
    const std::vector<RunGroup> groups = runGroups(all);
    QCOMPARE(groups.size(), std::size_t{2});
    QCOMPARE(groups[0].spread.count, std::size_t{3});
    QVERIFY(std::abs(groups[0].spread.mean - 1.0) < 1e-12);
    QVERIFY(std::abs(groups[1].spread.deviation - 0.1) < 1e-12);
    QVERIFY(groups[0].name != groups[1].name);
    QVERIFY(noiseSentence(groups[0], groups[1]).contains(QStringLiteral("It is not noise")));
    QVERIFY(noiseSentence(groups[0], groups[0]).contains(QStringLiteral("may be noise")));
    QCOMPARE(groupKeys(all), QStringList{QStringLiteral("accumulation.steps")});
    QCOMPARE(runGroups(all, QStringLiteral("accumulation.steps")).size(), std::size_t{3});
  }

  void a_seed_that_is_trained_again_is_no_further_sample() {
    std::vector<std::unique_ptr<RunSeries>> runs;
    for (const std::int64_t seed : {1, 2, 2, 2}) runs.push_back(finished(4, seed, 1.0 + static_cast<double>(seed)));
    QList<RunSeries*> all;
    for (const auto& run : runs) all.append(run.get());
    const std::vector<RunGroup> groups = runGroups(all);
    QCOMPARE(groups.size(), std::size_t{1});
    QCOMPARE(groups[0].spread.count, std::size_t{2});
    QCOMPARE(groups[0].spread.mean, 2.5);
    QVERIFY(runGroups(all.mid(1)).empty());
  }

  void a_window_without_a_label_is_no_point_of_a_pair() {
    const auto one = trained({.updates = 20}, QStringLiteral("one"));
    const auto two = trained({.updates = 20, .unlabelled = {7}}, QStringLiteral("two"));
    const PairComparison pair = comparisonOf(*one, *two);
    QCOMPARE(pair.points.size(), std::size_t{19});
    QVERIFY(std::ranges::none_of(pair.points, [](const SharedPoint& point) { return point.second == 0.0; }));
    QVERIFY(!pair.distance.first_divergence);
  }

  void a_window_without_a_label_is_no_point_of_a_group() {
    const auto one = seeded(1, {{1, 1.0}, {2, 2.0}});
    const auto two = seeded(2, {{1, 3.0}});
    two->append({{0, 0, 0, Update{.update = 2, .micro_step = 8, .outcome = StepOutcome::skipped_empty}}});
    std::vector<RunGroup> groups = runGroups({one.get(), two.get()});
    const GroupCurve curve(std::move(groups.front()));
    QCOMPARE(curve.mean().value(0), 2.0);
    QVERIFY(!isMeasured(curve.mean().value(1)) && !isMeasured(curve.least().value(1)));
    QVERIFY(curve.mean().marks().empty());
  }

  void a_group_has_a_mean_a_least_and_a_most_where_all_its_seeds_report() {
    const double nan = std::nan("");
    const auto one = seeded(1, {{1, 1.0}, {2, 5.0}, {4, 2.0}, {5, 0.5}});
    const auto two = seeded(2, {{1, 3.0}, {3, 9.0}, {4, 4.0}, {5, nan}, {6, 1.0}});
    const auto three = seeded(3, {{1, 8.0}, {2, 5.0}, {3, 9.0}, {4, 3.0}, {5, 0.5}, {6, 1.0}});
    std::vector<RunGroup> groups = runGroups({one.get(), two.get(), three.get()});
    QCOMPARE(groups.size(), std::size_t{1});
    const GroupCurve curve(std::move(groups.front()));
    QCOMPARE(curve.mean().size(), std::size_t{3});
    QCOMPARE(curve.mean().value(0), 4.0);
    QCOMPARE(curve.least().value(0), 1.0);
    QCOMPARE(curve.most().value(0), 8.0);
    QCOMPARE(curve.mean().value(1), 3.0);
    QCOMPARE(curve.most().value(1), 4.0);
    QVERIFY(std::isnan(curve.mean().value(2)) && std::isnan(curve.least().value(2)));
    QCOMPARE(curve.mean().clock(Clock::update)[1], 4.0);
    QCOMPARE(curve.mean().clock(Clock::sample)[1], 128.0);
    QCOMPARE(curve.mean().clock(Clock::seconds)[1], 8.0);  // of 4, 8 and 12 s
    QCOMPARE(curve.name(), QStringLiteral("toy: mean of 3 seeds"));
    QCOMPARE(curve.valueText(1), QStringLiteral("3.000 (2.000 to 4.000)"));
    QCOMPARE(curve.colorIndex(), 1);
  }
};

ACCRUE_TEST_MAIN(TestRunPair)

}  // namespace test_run_pair
#include "test_run_pair.moc"
