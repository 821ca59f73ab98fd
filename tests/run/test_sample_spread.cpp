// SPDX-License-Identifier: Apache-2.0
// Means, spreads and Welch's test, against values worked out by hand and against tables of Student's t.
#include <QTest>
#include <cmath>
#include <limits>
#include <vector>

#include "accrue/run/record/sample_spread.h"
#include "support/test_program.h"

namespace test_sample_spread {

using namespace accrue;

namespace {

bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance;
}

}  // namespace

class TestSampleSpread : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void mean_and_deviation_are_those_of_the_finite_values() {
    // By hand: 2, 4, 4, 6 have the mean 4, and squares of 4 + 0 + 0 + 4 over 3.
    const std::vector<double> values{2.0, std::numeric_limits<double>::quiet_NaN(), 4.0, 4.0, 6.0};
    const SampleSpread spread = spread_of(values);
    QCOMPARE(spread.count, std::size_t{4});
    QCOMPARE(spread.mean, 4.0);
    QVERIFY(near(spread.deviation, std::sqrt(8.0 / 3.0), 1e-15));
    QCOMPARE(spread.least, 2.0);
    QCOMPARE(spread.most, 6.0);
    QCOMPARE(spread_of({}).count, std::size_t{0});
    QCOMPARE(spread_of(std::vector{3.0}).deviation, 0.0);
  }

  /// The critical values of Student's t that every table prints, as pairs of equal spread and count: with n values
  /// each, there are 2 n - 2 degrees of freedom.
  void chances_are_those_of_the_tables() {
    struct Row {
      std::size_t each;
      double t;
      double chance;
    };
    for (const Row& row : {Row{2, 4.303, 0.05}, Row{2, 9.925, 0.01}, Row{6, 2.228, 0.05}, Row{6, 3.169, 0.01},
                           Row{11, 1.725, 0.10}, Row{16, 2.750, 0.01}}) {
      const SampleSpread first{.count = row.each, .mean = 0.0, .deviation = 1.0};
      SampleSpread second = first;
      second.mean = row.t * std::sqrt(2.0 / static_cast<double>(row.each));
      const auto difference = difference_of(first, second);
      QVERIFY(difference);
      QVERIFY(near(difference->freedom, 2.0 * static_cast<double>(row.each) - 2.0, 1e-9));
      QVERIFY2(near(difference->chance, row.chance, 2e-4), qPrintable(QString::number(difference->chance)));
    }
  }

  void unequal_spreads_take_degrees_of_freedom() {
    // By hand: variances of the means 1/4 and 4/4; (1.25)^2 / (1/16/3 + 1/3) = 1.5625 / 0.354166...
    const auto difference =
        difference_of({.count = 4, .mean = 1.0, .deviation = 1.0}, {.count = 4, .mean = 3.0, .deviation = 2.0});
    QVERIFY(difference);
    QCOMPARE(difference->difference, 2.0);
    QVERIFY(near(difference->standard_error, std::sqrt(1.25), 1e-15));
    QVERIFY(near(difference->freedom, 1.5625 / (1.0 / 48.0 + 1.0 / 3.0), 1e-12));
  }

  void without_spread_any_difference_is_real() {
    const SampleSpread same{.count = 3, .mean = 1.0};
    QCOMPARE(difference_of(same, same)->chance, 1.0);
    QCOMPARE(difference_of(same, {.count = 3, .mean = 1.5})->chance, 0.0);
  }

  void one_value_proves_nothing() {
    QVERIFY(!difference_of({.count = 1, .mean = 1.0}, {.count = 5, .mean = 2.0, .deviation = 0.1}));
  }
};

ACCRUE_TEST_MAIN(TestSampleSpread)

}  // namespace test_sample_spread
#include "test_sample_spread.moc"
