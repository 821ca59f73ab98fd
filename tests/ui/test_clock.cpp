// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSet>
#include <QTest>
#include <cmath>
#include <limits>
#include <random>

#include "kit/clock.h"
#include "kit/number_text.h"
#include "points/series_store.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_clock {

using namespace accrue::ui;
using accrue::test::current_row;
using accrue::test::Rows;

class TestClock : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_clock_has_its_own_words() {
    QSet<QString> names;
    QSet<QString> titles;
    for (const Clock clock : allClocks) {
      names.insert(clockName(clock));
      titles.insert(clockAxisTitle(clock));
      QVERIFY(!clockHelp(clock).isEmpty());
      QVERIFY(!clockUnit(clock).isEmpty());
    }
    QCOMPARE(names.size(), static_cast<int>(clockCount));
    QCOMPARE(titles.size(), static_cast<int>(clockCount));
  }

  void keys_lead_back_to_their_clock() {
    for (const Clock clock : allClocks) QVERIFY(clockFromKey(clockKey(clock)) == clock);
    QVERIFY(clockFromKey(QStringLiteral("sundial")) == Clock::update);
  }

  void columns_keep_whole_numbers_exactly() {
    ClockColumn column;
    for (std::int64_t i = 0; i < 100000; ++i) column.push(static_cast<double>(i * 65536));
    for (std::int64_t i = 0; i < 100000; ++i)
      QCOMPARE(column[static_cast<std::size_t>(i)], static_cast<double>(i * 65536));
  }

  void columns_keep_seconds_to_a_microsecond() {
    ClockColumn column;
    std::mt19937 random(4);
    std::uniform_real_distribution<double> pause(0.0, 0.2);
    std::vector<double> truth;
    double now = 0.0;
    for (int i = 0; i < 50000; ++i) {
      now += pause(random);
      truth.push_back(now);
      column.push(now);
    }
    for (std::size_t i = 0; i < truth.size(); ++i) QVERIFY(std::abs(column[i] - truth[i]) < 1e-6);
  }

  void columns_never_go_back() {
    ClockColumn column;
    for (const double value : {1.0, 3.0, 2.0, std::numeric_limits<double>::quiet_NaN(), 4.0}) column.push(value);
    QCOMPARE(column[2], 3.0);
    QCOMPARE(column[3], 3.0);
    QCOMPARE(column[4], 4.0);
  }

  void bounds_are_those_of_the_values() {
    ClockColumn column;
    std::mt19937 random(8);
    std::uniform_int_distribution<int> step(0, 2);  // equal neighbours happen
    std::vector<double> values;
    double now = 0.0;
    for (int i = 0; i < 1000; ++i) {
      values.push_back(now += step(random));
      column.push(now);
    }
    for (double x = -2.0; x < now + 3.0; x += 0.5) {
      const auto lower = std::lower_bound(values.begin(), values.end(), x) - values.begin();
      const auto upper = std::upper_bound(values.begin(), values.end(), x) - values.begin();
      QCOMPARE(column.lowerBound(x), static_cast<std::size_t>(lower));
      QCOMPARE(column.upperBound(x), static_cast<std::size_t>(upper));
    }
    QCOMPARE(ClockColumn().lowerBound(1.0), std::size_t{0});
  }

  void columns_can_be_cut_and_grown_again() {
    for (const std::size_t kept : {0U, 1U, 63U, 64U, 65U, 4096U, 5000U}) {
      ClockColumn column;
      for (int i = 0; i < 6000; ++i) column.push(i);
      column.truncate(kept);
      QCOMPARE(column.size(), kept);
      for (int i = 0; i < 300; ++i) column.push(static_cast<double>(kept) + i * 0.5);
      QCOMPARE(column.size(), kept + 300);
      if (kept > 0) QCOMPARE(column[kept - 1], static_cast<double>(kept - 1));
      QCOMPARE(column[kept + 299], static_cast<double>(kept) + 149.5);
    }
  }

  void nearest_finds_the_nearer_neighbour() {
    ClockTable clocks;
    SeriesStore store(clocks);
    QCOMPARE(store.nearest(Clock::sample, 3.0), std::size_t{0});
    for (const double x : {0.0, 10.0, 20.0}) {
      ClockPoint at;
      at.at.fill(x);
      clocks.append(at);
      store.append(x);
    }
    QCOMPARE(store.nearest(Clock::sample, -5.0), std::size_t{0});
    QCOMPARE(store.nearest(Clock::sample, 4.0), std::size_t{0});
    QCOMPARE(store.nearest(Clock::sample, 6.0), std::size_t{1});
    // A step beyond its end a series still has its last value; further out it has none.
    QCOMPARE(store.reading(Clock::sample, 29.0), std::size_t{2});
    QCOMPARE(store.reading(Clock::sample, 31.0), store.size());
    QCOMPARE(store.reading(Clock::sample, -11.0), store.size());
    QCOMPARE(store.nearest(Clock::sample, 99.0), std::size_t{2});
  }

  void numbers_are_written_for_people_data() {
    const Rows<QString, QString> row;
    const QString thin(thinSpace);
    row("loss", valueText(2.3109), QStringLiteral("2.311"));
    row("grouped", valueText(1204.4), QStringLiteral("1") + thin + QStringLiteral("204"));
    row("small rate", valueText(3e-4, 3), QStringLiteral("3.0×10⁻⁴"));
    row("negative", valueText(-0.013, 2), QString(minusSign) + QStringLiteral("0.013"));
    row("zero", valueText(0.0), QStringLiteral("0"));
    row("nan", valueText(std::numeric_limits<double>::quiet_NaN()), QStringLiteral("NaN"));
    row("infinite", valueText(std::numeric_limits<double>::infinity()), QStringLiteral("+∞"));
    row("count", countText(24000), QStringLiteral("24") + thin + QStringLiteral("000"));
    row("million", countText(1.2e6), QStringLiteral("1.2%1M").arg(thin));
    row("billion", countText(3e9), QStringLiteral("3%1G").arg(thin));
    row("short time", durationShort(12.5), QStringLiteral("12.5"));
    row("minutes", durationShort(125), QStringLiteral("2:05"));
    row("hours", durationShort(3725), QStringLiteral("1:02:05"));
    row("milliseconds", spanText(0.0021), QStringLiteral("2.10%1ms").arg(thin));
    row("microseconds", spanText(0.000812), QStringLiteral("812%1µs").arg(thin));
  }

  void numbers_are_written_for_people() {
    const auto [written, expected] = current_row<QString, QString>();
    QCOMPARE(written, expected);
  }

  void ticks_have_the_digits_their_step_needs_data() {
    const Rows<double, double, QString> row;
    const QString thin(thinSpace);
    row("whole", 4.0, 1.0, QStringLiteral("4"));
    row("half", 2.5, 0.5, QStringLiteral("2.5"));
    row("quarter", 7.5, 2.5, QStringLiteral("7.5"));
    row("rounding", 0.30000000000000004, 0.1, QStringLiteral("0.3"));
    row("zero", 1e-17, 0.1, QStringLiteral("0"));
    row("negative", -0.2, 0.1, QString(minusSign) + QStringLiteral("0.2"));
    row("thousands", 20000.0, 5000.0, QStringLiteral("20") + thin + QStringLiteral("000"));
    row("millions", 1.5e6, 5e5, QStringLiteral("1.5%1M").arg(thin));
    row("rate", 2e-4, 1e-4, QStringLiteral("2×10⁻⁴"));
    row("rate as its neighbours", 1e-3, 5e-4, QStringLiteral("1.0×10⁻³"));
    row("rate by halves", 2.5e-4, 5e-5, QStringLiteral("2.5×10⁻⁴"));
  }

  void ticks_have_the_digits_their_step_needs() {
    const auto [value, step, expected] = current_row<double, double, QString>();
    QCOMPARE(tickText(value, step), expected);
  }
};

ACCRUE_TEST_MAIN(TestClock)

}  // namespace test_clock
#include "test_clock.moc"
