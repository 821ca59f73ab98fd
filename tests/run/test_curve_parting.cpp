// SPDX-License-Identifier: Apache-2.0
// Parting of two curves, on pairs that part at a known point, and the points at which runs are compared.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "accrue/run/record/curve_comparison.h"
#include "accrue/run/record/curve_parting.h"
#include "support/test_program.h"

namespace test_curve_parting {

using namespace accrue;

namespace {

constexpr std::size_t points = 200;

/// A falling loss with noise of its own.
std::vector<double> noisy(unsigned seed, double noise) {
  std::mt19937 random(seed);
  std::normal_distribution<double> chance(0.0, noise);
  std::vector<double> curve;
  for (std::size_t i = 0; i < points; ++i)
    curve.push_back(1.0 + 2.0 / (1.0 + 0.05 * static_cast<double>(i)) + chance(random));
  return curve;
}

/// Losses 3 less a hundredth of the step, at every so many steps; of `batch` samples each, 0 where they are not
/// counted.
LossCurve line(std::int64_t every, std::int64_t last, std::int64_t batch = 0) {
  LossCurve curve;
  for (std::int64_t step = every; step <= last; step += every)
    curve.points.push_back({step, step * batch, 3.0 - static_cast<double>(step) / 100.0});
  return curve;
}

LossCurve losses(const std::vector<double>& values) {
  LossCurve curve;
  for (const double value : values) curve.points.push_back({std::int64_t(curve.points.size()) + 1, 0, value});
  return curve;
}

/// A run of updates of so many samples, that has a loss after each; every run has the same loss after as many samples.
LossCurve windows(std::int64_t samples, std::int64_t in_all) {
  LossCurve curve;
  for (std::int64_t update = 1; update * samples <= in_all; ++update)
    curve.points.push_back({update, update * samples, 1.0 / double(update * samples)});
  return curve;
}

std::size_t gaps(const std::vector<ComparedPoint>& points) {
  std::size_t count = 0;
  for (const ComparedPoint& point : points)
    count += std::size_t(std::ranges::count(point.losses, false, &std::optional<double>::has_value));
  return count;
}

}  // namespace

class TestCurveParting : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void equal_curves_do_not_part() {
    const auto curve = noisy(1, 0.1);
    QVERIFY(!curve_parting(curve, curve));
    auto rounded = curve;
    for (double& value : rounded) value *= 1.0 + 1e-7;
    QVERIFY(!curve_parting(curve, rounded));
    QVERIFY(!curve_parting({}, {}));
  }

  void curves_of_one_seed_part_where_they_first_differ() {
    const auto curve = noisy(1, 0.1);
    for (const std::size_t at : {1U, 17U, 100U, 199U}) {
      auto other = curve;
      for (std::size_t i = at; i < points; ++i) other[i] -= 0.001 * static_cast<double>(i - at + 1);
      const auto parting = curve_parting(curve, other);
      QVERIFY(parting);
      QCOMPARE(parting->index, at);
      QCOMPARE(parting->noise, 0.0);
      QVERIFY(std::abs(parting->difference + 0.001) < 1e-12);
    }
  }

  /// The point is found within one update, in either direction, wherever it is.
  void curves_of_two_seeds_part_where_the_difference_leaves_its_noise() {
    int exact = 0, pairs = 0;
    for (unsigned seed = 1; seed <= 50; ++seed) {
      const std::size_t at = 20 + 3 * seed;
      const auto curve = noisy(seed, 0.01);
      auto other = noisy(seed + 1000, 0.01);
      for (std::size_t i = at; i < points; ++i) other[i] += seed % 2 ? 0.1 : -0.1;
      const auto parting = curve_parting(curve, other);
      QVERIFY2(parting, qPrintable(QString::number(seed)));
      QVERIFY2(parting->index + 1 >= at && parting->index <= at + 1,
               qPrintable(QStringLiteral("seed %1: %2, not %3").arg(seed).arg(parting->index).arg(at)));
      // Two independent curves of 0.01 differ by 0.01 times the root of two.
      QVERIFY(std::abs(parting->noise - 0.01414) < 0.006);
      exact += parting->index == at;
      ++pairs;
    }
    QVERIFY(exact >= pairs - 2);
  }

  void chance_alone_is_no_parting() {
    int parted = 0;
    for (unsigned seed = 1; seed <= 100; ++seed)
      parted += curve_parting(noisy(seed, 0.05), noisy(seed + 1000, 0.05)).has_value();
    QVERIFY2(parted <= 2, qPrintable(QString::number(parted)));
  }

  void a_stray_point_is_no_parting() {
    const auto curve = noisy(3, 0.01);
    auto other = noisy(4, 0.01);
    other[60] += 1.0;
    QVERIFY(!curve_parting(curve, other));
  }

  void curves_on_different_levels_part_at_once() {
    const auto curve = noisy(5, 0.01);
    auto other = noisy(6, 0.01);
    for (double& value : other) value += 0.2;
    const auto parting = curve_parting(curve, other);
    QVERIFY(parting);
    QCOMPARE(parting->index, std::size_t{0});
  }

  void a_curve_that_alone_becomes_infinite_parts_there() {
    const auto curve = noisy(7, 0.01);
    auto other = curve;
    for (std::size_t i = 30; i < points; ++i) other[i] = std::numeric_limits<double>::quiet_NaN();
    const auto parting = curve_parting(curve, other);
    QVERIFY(parting);
    QCOMPARE(parting->index, std::size_t{30});
  }

  void few_points_of_two_seeds_prove_nothing() {
    const std::vector<double> first{3.0, 2.5, 2.0};
    const std::vector<double> second{2.9, 2.6, 1.0};
    QVERIFY(!curve_parting(first, second));
    QVERIFY(too_few_to_judge(first, second));
    QVERIFY(!too_few_to_judge(first, first));
    QVERIFY(!too_few_to_judge({}, {}));
    QVERIFY(!too_few_to_judge(noisy(1, 0.05), noisy(1001, 0.05)));
    // One seed: what differs later is real, however few the points.
    const std::vector<double> later{3.0, 2.5, 1.0};
    QVERIFY(curve_parting(first, later) && !too_few_to_judge(first, later));
  }

  void logs_without_sample_counts_are_compared_at_equal_updates() {
    const PairComparison other = compare_pair(losses({3, 2, 1}), losses({9, 7, 1}));
    QCOMPARE(other.clock, ComparisonClock::updates);
    QCOMPARE(other.points, (std::vector<SharedPoint>{{1, 3, 9}, {2, 2, 7}, {3, 1, 1}}));
    QCOMPARE(other.distance.first_divergence, (SharedPoint{1, 3, 9}));
    QVERIFY(other.distance.too_few_points);
    // One line, logged at every 10 and at every 20 steps.
    const PairComparison same = compare_pair(line(10, 200), line(20, 400));
    QCOMPARE(same.distance.shared_points, 10);
    QVERIFY(!same.distance.first_divergence && !same.distance.parting);
    QCOMPARE(compare_pair(line(10, 200), line(7, 60)).distance.shared_points, 0);
  }

  void samples_are_the_clock_where_both_count_them() {
    QCOMPARE(compare_pair(line(10, 200, 8), line(20, 400, 4)).points.front().at, 80);
    QCOMPARE(compare_pair(line(10, 200, 8), line(20, 400)).clock, ComparisonClock::updates);
    QCOMPARE(compare_pair(line(10, 200), line(20, 400, 8)).points.front().at, 20);
    QCOMPARE(compare_pair(line(10, 200, 8), {}).clock, ComparisonClock::samples);
    // Skipped updates train on nothing: of several losses after as many samples the last counts, in either run.
    LossCurve skipping{"a", "", {{1, 8, 3.0}, {2, 16, 2.0}, {3, 16, 2.5}, {4, 24, 1.0}}};
    const LossCurve plain{"b", "", {{1, 8, 3.0}, {2, 16, 2.5}, {3, 24, 1.0}}};
    QVERIFY(!compare_pair(skipping, plain).distance.first_divergence);
    QVERIFY(!compare_pair(plain, skipping).distance.first_divergence);
    QCOMPARE(compare_pair(skipping, plain).distance.shared_points, 3);
  }

  void a_branch_has_the_past_of_its_run_in_either_order() {
    const LossCurve run{"a", "", {{1, 4, 3.0}, {2, 8, 2.0}, {3, 12, 1.0}}};
    const LossCurve branch{"b", "a", {{3, 12, 0.5}}};
    for (const PairComparison& pair : {compare_pair(run, branch), compare_pair(branch, run)}) {
      QCOMPARE(pair.distance.shared_points, 3);
      QCOMPARE(pair.distance.parting->at, 12);
      QCOMPARE(pair.distance.noise, 0.0);
    }
    QCOMPARE(compare_pair(run, {"b", "another", branch.points}).distance.shared_points, 1);
  }

  /// N against N: after 256 samples all have a loss, and a row of the table is no row of gaps.
  void a_table_of_runs_shows_the_points_that_all_reported() {
    std::vector<LossCurve> runs;
    for (const std::int64_t samples : {8, 16, 32, 64, 128, 256}) runs.push_back(windows(samples, 4096));
    const auto points = compared_points(runs, common_clock(runs));
    QCOMPARE(points.size(), std::size_t{256});
    const auto shown = points_to_show(points, 12);
    QCOMPARE(shown.size(), std::size_t{12});
    QCOMPARE(gaps(shown), std::size_t{0});
    QCOMPARE(shown.front().at, 256);
    QCOMPARE(shown.back().at, 4096);
    // Fewer points than rows: each once.
    runs.push_back(windows(2048, 4096));
    QCOMPARE(points_to_show(compared_points(runs, common_clock(runs)), 12).size(), std::size_t{2});
    // A run that ended early leaves gaps behind its end, and none before.
    runs.back() = windows(256, 1024);
    const auto ended = points_to_show(compared_points(runs, common_clock(runs)), 16);
    QCOMPARE(ended.size(), std::size_t{16});
    QCOMPARE(gaps(ended), std::size_t{12});
    QVERIFY(ended[3].losses.back() && !ended[4].losses.back());
    QVERIFY(points_to_show({}, 12).empty());
  }
};

ACCRUE_TEST_MAIN(TestCurveParting)

}  // namespace test_curve_parting
#include "test_curve_parting.moc"
