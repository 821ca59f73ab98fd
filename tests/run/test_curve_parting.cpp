// SPDX-License-Identifier: Apache-2.0
// Where two curves part, on pairs that were made to part at a known point.
#include <QTest>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "accrue/run/curve_parting.h"
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
};

ACCRUE_TEST_MAIN(TestCurveParting)

}  // namespace test_curve_parting
#include "test_curve_parting.moc"
