// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "points/column_reducer.h"
#include "support/test_program.h"

namespace test_reducer {

using namespace accrue::ui;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

/// A series whose position on every clock is its number times `spacing`.
struct Made {
  Made() = default;
  /// Random values at random distances; this part of them are gaps.
  Made(unsigned seed, int count, double gap_chance = 0.0) {
    std::mt19937 random(seed);
    grow(random, count, gap_chance);
  }
  void grow(std::mt19937& random, int count, double gap_chance = 0.0) {
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    std::normal_distribution<double> normal;
    double x = end();
    for (int i = 0; i < count; ++i) {
      x += unit(random) * 2.0;
      push(x, unit(random) < gap_chance ? quiet_nan : normal(random));
    }
  }

  ClockTable clocks;
  SeriesStore store{clocks};

  void push(double x, double value) {
    ClockPoint at;
    at.at.fill(x);
    clocks.append(at);
    store.append(value);
  }
  SeriesView view() const { return viewOf(store, Clock::update); }
  double end() const { return clocks.size() == 0 ? 0.0 : clocks[Clock::update][clocks.size() - 1]; }
};

std::multiset<std::pair<double, double>> pointsOf(const ReducedLine& line) {
  std::multiset<std::pair<double, double>> points;
  for (std::size_t i = 0; i < line.x.size(); ++i)
    if (std::isfinite(line.y[i])) points.insert({line.x[i], line.y[i]});
  return points;
}

}  // namespace

class TestReducer : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void pyramid_answers_as_a_scan_does() {
    std::mt19937 random(7);
    const Made made(7, 5000, 0.05);
    std::uniform_int_distribution<std::size_t> index(0, made.store.size());
    for (int trial = 0; trial < 2000; ++trial) {
      std::size_t first = index(random);
      std::size_t last = index(random);
      if (first > last) std::swap(first, last);
      MinMax expected;
      for (std::size_t i = first; i < last; ++i) expected.add(i, made.store.value(i));
      QVERIFY(made.store.range(first, last) == expected);
    }
  }

  void pyramid_forgets_what_is_cut() {
    std::mt19937 random(11);
    for (const std::size_t kept : {0U, 1U, 15U, 16U, 17U, 127U, 128U, 129U, 1024U, 3001U, 4096U}) {
      Made made;
      made.grow(random, 5000);
      made.store.truncate(kept);
      made.clocks.truncate(kept);
      made.grow(random, 3000);
      Made fresh;
      for (std::size_t i = 0; i < made.store.size(); ++i)
        fresh.push(made.clocks[Clock::update][i], made.store.value(i));
      for (std::size_t first = 0; first < made.store.size(); first += 97)
        QVERIFY(made.store.range(first, made.store.size()) == fresh.store.range(first, made.store.size()));
    }
  }

  void every_bin_keeps_its_first_smallest_largest_and_last() {
    std::mt19937 random(3);
    for (int trial = 0; trial < 30; ++trial) {
      Made made;
      made.grow(random, 6000);
      const double end = made.end();
      const double width = binWidth(end, 50 + trial * 13);
      const auto kept = pointsOf(reduceLine(made.view(), 0.0, end, width));
      std::map<double, std::vector<std::size_t>> bins;
      for (std::size_t i = 0; i < made.store.size(); ++i)
        bins[std::floor(made.clocks[Clock::update][i] / width)].push_back(i);
      for (const auto& [bin, members] : bins) {
        const auto byValue = [&](std::size_t a, std::size_t b) { return made.store.value(a) < made.store.value(b); };
        for (const std::size_t i :
             {members.front(), members.back(), *std::min_element(members.begin(), members.end(), byValue),
              *std::max_element(members.begin(), members.end(), byValue)})
          QVERIFY2(kept.contains({made.clocks[Clock::update][i], made.store.value(i)}),
                   qPrintable(QString::number(bin)));
      }
    }
  }

  void reducing_twice_changes_nothing() {
    const Made made(5, 20000);
    const double end = made.end();
    const double width = binWidth(end, 300);
    const ReducedLine once = reduceLine(made.view(), 0.0, end, width);
    Made again;
    for (std::size_t i = 0; i < once.x.size(); ++i) again.push(once.x[i], once.y[i]);
    const ReducedLine twice = reduceLine(again.view(), 0.0, end, width);
    QCOMPARE(twice.y, once.y);
    QCOMPARE(twice.x.size(), once.x.size());
  }

  void appending_moves_no_bin() {
    std::mt19937 random(13);
    Made made;
    made.grow(random, 9000);
    const double end = made.end();
    const double width = binWidth(end, 200);
    const ReducedLine before = reduceLine(made.view(), 0.0, end * 2.0, width);
    made.grow(random, 4000);
    const ReducedLine after = reduceLine(made.view(), 0.0, end * 2.0, width);
    // All but the last bin, which was still filling, are as they were.
    const double settled = std::floor(end / width) * width;
    for (std::size_t i = 0; i < before.x.size() && before.x[i] < settled; ++i) {
      QCOMPARE(after.x[i], before.x[i]);
      QCOMPARE(after.y[i], before.y[i]);
    }
  }

  void a_line_has_at_most_two_points_a_pixel() {
    const Made made(17, 60000, 0.01);
    const double end = made.end();
    for (const int pixels : {37, 400, 1200, 2399}) {
      const ReducedLine line = reduceLine(made.view(), end * 0.1, end * 0.9, binWidth(end * 0.8, pixels));
      QVERIFY(line.reduced);
      // One bin at each end may be cut by the edge of the view, and one point lies beyond each.
      QVERIFY2(line.x.size() <= 2U * static_cast<unsigned>(pixels) + 10U, qPrintable(QString::number(line.x.size())));
    }
  }

  void few_points_are_handed_over_as_they_are() {
    const Made made(19, 500);
    const double end = made.end();
    const ReducedLine line = reduceLine(made.view(), 0.0, end, binWidth(end, 1000));
    QVERIFY(!line.reduced);
    QCOMPARE(line.points, std::size_t{500});
    QCOMPARE(line.x.size(), std::size_t{500});
  }

  void a_line_reaches_beyond_both_ends() {
    Made made;
    for (int i = 0; i < 100; ++i) made.push(i, i);
    const ReducedLine line = reduceLine(made.view(), 40.5, 59.5, 0.1);
    QCOMPARE(line.x.front(), 40.0);
    QCOMPARE(line.x.back(), 60.0);
    QCOMPARE(line.points, std::size_t{19});
  }

  void a_bin_without_finite_points_is_a_gap() {
    Made made;
    for (int i = 0; i < 4000; ++i) made.push(i, i >= 1000 && i < 2000 ? quiet_nan : 1.0);
    const ReducedLine line = reduceLine(made.view(), 0.0, 4000.0, 100.0);
    bool gap = false;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (line.x[i] >= 1000.0 && line.x[i] < 2000.0) {
        QVERIFY(std::isnan(line.y[i]));
        gap = true;
      } else {
        QCOMPARE(line.y[i], 1.0);
      }
    }
    QVERIFY(gap);
  }

  void a_band_covers_every_point() {
    const Made made(23, 30000, 0.02);
    const double end = made.end();
    const double width = binWidth(end, 600);
    std::map<double, BandColumn> columns;
    for (const BandColumn& column : reduceBand(made.view(), 0.0, end, width)) columns[column.x] = column;
    for (std::size_t i = 0; i < made.store.size(); ++i) {
      if (!std::isfinite(made.store.value(i))) continue;
      const auto column = columns.find(std::floor(made.clocks[Clock::update][i] / width + 0.5) * width);
      QVERIFY(column != columns.end());
      QVERIFY(column->second.low <= made.store.value(i) && made.store.value(i) <= column->second.high);
    }
  }

  void a_single_spike_among_a_million_is_kept() {
    Made made;
    for (int i = 0; i < 1000000; ++i) made.push(i, i == 654321 ? 99.0 : std::sin(i * 0.001));
    const ReducedLine line = reduceLine(made.view(), 0.0, 1e6, binWidth(1e6, 1200));
    const auto spike = std::find(line.y.begin(), line.y.end(), 99.0);
    QVERIFY(spike != line.y.end());
    QCOMPARE(line.x[static_cast<std::size_t>(spike - line.y.begin())], 654321.0);
  }

  void bin_widths_are_rare_and_large_enough() {
    std::set<double> widths;
    for (double span = 1000.0; span < 2000.0; span += 1.0) {
      const double width = binWidth(span, 500.0);
      QVERIFY(width >= 2.0 * span / 500.0 * (1.0 - 1e-9));
      QVERIFY(width <= 2.5 * span / 500.0 * (1.0 + 1e-9));
      widths.insert(width);
    }
    QVERIFY(widths.size() <= 5);
  }

  void ranges_ignore_what_is_not_finite() {
    Made made;
    const double inf = std::numeric_limits<double>::infinity();
    for (const double value : {3.0, quiet_nan, inf, -2.0, 0.5, -inf})
      made.push(static_cast<double>(made.store.size()), value);
    const MinMax range = valueRange(made.view(), 0.0, 10.0);
    QCOMPARE(range.low, -2.0);
    QCOMPARE(range.high, 3.0);
    QCOMPARE(smallestPositive(made.view(), 0.0, 10.0), 0.5);
    QCOMPARE(made.store.marks().size(), std::size_t{3});
    QCOMPARE(made.store.marks()[1], (Mark{2, MarkKind::plusInfinity}));
    QCOMPARE(made.store.marks()[2], (Mark{5, MarkKind::minusInfinity}));
    QCOMPARE(made.store.countNotPositive(), std::size_t{1});
  }
};

ACCRUE_TEST_MAIN(TestReducer)

}  // namespace test_reducer
#include "test_reducer.moc"
