// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>
#include <limits>
#include <random>

#include "points/smoothing.h"
#include "support/test_program.h"

namespace test_smoothing {

using namespace accrue::ui;

namespace {

struct Made {
  ClockTable clocks;
  SeriesStore store{clocks};
  void push(double value) {
    ClockPoint at;
    at.at.fill(static_cast<double>(store.size()));
    clocks.append(at);
    store.append(value);
  }
};

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

class TestSmoothing : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_constant_stays_that_constant() {
    Made made;
    for (int i = 0; i < 5000; ++i) made.push(2.3125);
    for (const double weight : {0.0, 0.5, 0.9, 0.999}) {
      const SmoothedSeries smoothed(made.store, weight);
      for (std::size_t i = 0; i < made.store.size(); ++i) QCOMPARE(smoothed.value(i), 2.3125);
    }
  }

  void equals_the_formula_it_states() {
    std::mt19937 random(1);
    std::normal_distribution<double> normal(3.0, 1.0);
    Made made;
    for (int i = 0; i < 200; ++i) made.push(normal(random));
    const double weight = 0.9;
    const SmoothedSeries smoothed(made.store, weight);
    for (std::size_t t = 0; t < made.store.size(); ++t) {
      double above = 0.0;
      double below = 0.0;
      for (std::size_t k = 0; k <= t; ++k) {
        const double factor = std::pow(weight, static_cast<double>(k));
        above += factor * made.store.value(t - k);
        below += factor;
      }
      QVERIFY(std::abs(smoothed.value(t) - above / below) < 1e-12 * std::abs(above / below) * 10.0);
    }
  }

  void a_point_that_is_not_finite_leaves_a_gap_and_does_not_count() {
    Made with;
    Made without;
    for (int i = 0; i < 100; ++i) {
      if (i % 7 == 3) with.push(i % 2 ? quiet_nan : std::numeric_limits<double>::infinity());
      with.push(std::sin(i));
      without.push(std::sin(i));
    }
    const SmoothedSeries a(with.store, 0.8);
    const SmoothedSeries b(without.store, 0.8);
    std::size_t j = 0;
    for (std::size_t i = 0; i < with.store.size(); ++i) {
      if (!std::isfinite(with.store.value(i))) {
        QVERIFY(std::isnan(a.value(i)));
        continue;
      }
      QCOMPARE(a.value(i), b.value(j++));
    }
    QCOMPARE(j, without.store.size());
  }

  void growing_equals_starting_over() {
    Made made;
    SmoothedSeries growing(made.store, 0.95);
    for (int i = 0; i < 3000; ++i) {
      made.push(std::cos(i * 0.1));
      if (i % 17 == 0) growing.catchUp();
    }
    growing.catchUp();
    const SmoothedSeries fresh(made.store, 0.95);
    QCOMPARE(growing.size(), fresh.size());
    for (std::size_t i = 0; i < fresh.size(); ++i) QCOMPARE(growing.value(i), fresh.value(i));
  }

  void a_cut_series_is_smoothed_anew() {
    Made made;
    for (int i = 0; i < 100; ++i) made.push(i);
    SmoothedSeries smoothed(made.store, 0.5);
    made.store.truncate(10);
    made.clocks.truncate(10);
    for (int i = 0; i < 5; ++i) made.push(-1.0);
    smoothed.catchUp();
    QCOMPARE(smoothed.size(), std::size_t{15});
    const SmoothedSeries fresh(made.store, 0.5);
    for (std::size_t i = 0; i < fresh.size(); ++i) QCOMPARE(smoothed.value(i), fresh.value(i));
  }

  void no_weight_changes_nothing() {
    Made made;
    for (int i = 0; i < 50; ++i) made.push(std::exp(std::sin(i * 3.0)));
    const SmoothedSeries smoothed(made.store, 0.0);
    for (std::size_t i = 0; i < made.store.size(); ++i)
      QVERIFY(std::abs(smoothed.value(i) - made.store.value(i)) < 1e-15 * 8.0);
  }

  void stays_within_the_values() {
    std::mt19937 random(2);
    std::uniform_real_distribution<double> uniform(-1.0, 4.0);
    Made made;
    for (int i = 0; i < 20000; ++i) made.push(uniform(random));
    const SmoothedSeries smoothed(made.store, 0.99);
    for (std::size_t i = 0; i < smoothed.size(); ++i) QVERIFY(smoothed.value(i) >= -1.0 && smoothed.value(i) <= 4.0);
  }

  void the_formula_names_its_weight() { QVERIFY(smoothingFormula(0.9).contains(QStringLiteral("0.9"))); }

  void stops_go_up_and_down() {
    double weight = 0.0;
    QSet<double> seen;
    for (int i = 0; i < 20; ++i) {
      seen.insert(weight);
      weight = nextSmoothing(weight, 1);
    }
    QCOMPARE(weight, 0.999);
    QCOMPARE(seen.size(), 9);
    for (int i = 0; i < 20; ++i) weight = nextSmoothing(weight, -1);
    QCOMPARE(weight, 0.0);
    QCOMPARE(nextSmoothing(0.85, -1), 0.8);
  }
};

ACCRUE_TEST_MAIN(TestSmoothing)

}  // namespace test_smoothing
#include "test_smoothing.moc"
