// SPDX-License-Identifier: GPL-3.0-or-later
// What plots paint, by meaning: whether a thing that must be seen has its colour where it must be.
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QElapsedTimer>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "made_run.h"
#include "models/number_text.h"
#include "models/run_text.h"
#include "plots/learning_rate_plot.h"
#include "plots/loss_plot.h"
#include "plots/plot_area.h"
#include "plots/sync_strip.h"
#include "style/theme.h"

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

bool near(QRgb pixel, const QColor& color, int tolerance = 24) {
  return std::abs(qRed(pixel) - color.red()) <= tolerance && std::abs(qGreen(pixel) - color.green()) <= tolerance &&
         std::abs(qBlue(pixel) - color.blue()) <= tolerance;
}

/// Pixels that show a colour over the surface: of its hue, and covered by it to at least this part. Lines are smooth at
/// their edges, so a thin one seldom covers a pixel whole.
int count(const QImage& image, const QColor& color, const QRect& within, double leastCover = 0.4) {
  const QColor ground = isDark(qApp->palette()) ? darkColors().surface : lightColors().surface;
  const std::array<double, 3> from = {double(ground.red()), double(ground.green()), double(ground.blue())};
  const std::array<double, 3> way = {color.red() - from[0], color.green() - from[1], color.blue() - from[2]};
  const double length = way[0] * way[0] + way[1] * way[1] + way[2] * way[2];
  int found = 0;
  const QRect area = within & image.rect();
  for (int y = area.top(); y <= area.bottom(); ++y)
    for (int x = area.left(); x <= area.right(); ++x) {
      const QRgb pixel = image.pixel(x, y);
      const std::array<double, 3> to = {qRed(pixel) - from[0], qGreen(pixel) - from[1], qBlue(pixel) - from[2]};
      const double cover = (to[0] * way[0] + to[1] * way[1] + to[2] * way[2]) / length;
      if (cover < leastCover || cover > 1.1) continue;
      const double off = std::hypot(to[0] - cover * way[0], to[1] - cover * way[1], to[2] - cover * way[2]);
      found += off <= 14.0;
    }
  return found;
}

}  // namespace

class TestPlots : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { theme_ = std::make_unique<Theme>(*qApp); }

  void init() {
    theme_->setMode(ThemeMode::light);
    area_ = std::make_unique<PlotArea>();
    area_->resize(800, 600);
    area_->show();
    QVERIFY(QTest::qWaitForWindowExposed(area_.get()));
  }

  void cleanup() {
    area_.reset();
    runs_.clear();
  }

  void says_what_to_do_while_there_is_no_run() {
    QVERIFY(area_->emptyText().contains(QStringLiteral("Press Run (F5)")));
    QVERIFY(!loss().isVisible());
    show({&add({}, 5, 0)});
    QVERIFY(loss().isVisible());
    show({});
    QVERIFY(!loss().isVisible());
  }

  void paints_a_run_in_its_colour() {
    show({&add({}, 40, 2)});
    const QImage image = picture();
    QVERIFY(count(image, seriesColor(lightColors(), 2), drawing(loss())) > 100);
    QVERIFY(count(image, seriesColor(lightColors(), 2), drawing(rate())) > 100);
  }

  void a_hidden_run_leaves_no_pixel_of_its_colour() {
    RunSeries& shown = add({}, 40, 0);
    RunSeries& hidden = add({.steps = 8}, 20, 1);
    show({&shown, &hidden});
    QVERIFY(count(picture(), seriesColor(lightColors(), 1), drawing(loss())) > 0);
    show({&shown});
    QCOMPARE(count(picture(), seriesColor(lightColors(), 1), drawing(loss()), 0.12), 0);
  }

  void a_spike_is_painted() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 200};
    made.loss = [](std::int64_t m, std::int64_t) { return m == 120 ? 9.0 : 1.0; };
    show({&add(made, 200, 0)});
    const QImage image = picture();
    const QRect area = drawing(loss());
    const int x = area.left() + static_cast<int>(120.0 / 200.0 * area.width());
    const QRect top(x - 6, area.top(), 12, area.height() / 3);
    QVERIFY(count(image, seriesColor(lightColors(), 0), top) > 20);
    QCOMPARE(count(image, seriesColor(lightColors(), 0), top.translated(-60, 0), 0.2), 0);
  }

  void a_spike_among_many_is_painted() {
    MadeRun made{.steps = 100, .ranks = 1, .updates = 1000, .batchesPerEpoch = 100000};
    made.loss = [](std::int64_t m, std::int64_t) {
      return m == 61234 ? 9.0 : 1.0 + 0.1 * std::sin(static_cast<double>(m));
    };
    show({&add(made, 1000, 0)});
    const QImage image = picture();
    const QRect area = drawing(loss());
    const int x = area.left() + static_cast<int>(61234.0 / 100000.0 * area.width());
    const QColor ground = lightColors().surface;
    const QRect top(x - 3, area.top() + 20, 6, area.height() / 3);
    const QImage patch = image.copy(top);
    int painted = 0;
    for (int y = 0; y < patch.height(); ++y)
      for (int column = 0; column < patch.width(); ++column) painted += !near(patch.pixel(column, y), ground, 20);
    QVERIFY2(painted > patch.height() / 2, qPrintable(QString::number(painted)));
    QVERIFY(loss().header().badge().contains(QStringLiteral("min–max")));
  }

  void a_gap_stays_a_gap() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 100};
    made.loss = [](std::int64_t m, std::int64_t) {
      return m > 40 && m < 60 ? quiet_nan : 1.0 + 0.001 * static_cast<double>(m);
    };
    show({&add(made, 100, 0)});
    const QImage image = picture();
    const QRect area = drawing(loss());
    const auto columns = [&](double from, double to) {
      return QRect(area.left() + static_cast<int>(area.width() * from), area.top() + 14,
                   static_cast<int>(area.width() * (to - from)), area.height() - 20);
    };
    QCOMPARE(count(image, seriesColor(lightColors(), 0), columns(0.43, 0.57)), 0);
    QVERIFY(count(image, seriesColor(lightColors(), 0), columns(0.1, 0.3)) > 20);
    QVERIFY(count(image, lightColors().failed, QRect(area.left(), area.top(), area.width(), 12)) > 10);
  }

  void the_plan_is_there_before_the_run() {
    RunSeries& run = add({.updates = 60}, 0, 0);
    show({&run});
    QTRY_VERIFY(!run.plannedLearningRate(Clock::update).empty());
    const QImage image = picture();
    const QColor dotted = mixed(seriesColor(lightColors(), 0), lightColors().surface, 0.7);
    QVERIFY(count(image, dotted, drawing(rate())) > 40);
    QCOMPARE(count(image, seriesColor(lightColors(), 0), drawing(loss())), 0);
  }

  void the_badge_says_what_was_reduced() {
    RunSeries& run = add({.updates = 40}, 40, 0);
    show({&run});
    QVERIFY(!loss().header().badge().contains(QStringLiteral("px")));
    QVERIFY(loss().header().badge().contains(QStringLiteral("pts")));
    RunSeries& large = add({.steps = 4, .ranks = 1, .updates = 5000, .batchesPerEpoch = 1000}, 5000, 1);
    show({&large});
    const QString badge = loss().header().badge();
    QVERIFY2(badge.contains(countText(25000) + QStringLiteral(" pts")), qPrintable(badge));
    QVERIFY2(badge.contains(QStringLiteral("px, min–max")), qPrintable(badge));
  }

  void the_badge_counts_what_is_not_finite() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 50};
    made.loss = [](std::int64_t m, std::int64_t) { return m % 10 == 0 ? quiet_nan : 1.0; };
    show({&add(made, 50, 0)});
    QVERIFY2(loss().header().badge().contains(QStringLiteral("10 not finite")), qPrintable(loss().header().badge()));
  }

  void log_y_says_what_it_cannot_show() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 50};
    made.loss = [](std::int64_t m, std::int64_t) { return m <= 5 ? -1.0 : static_cast<double>(m); };
    show({&add(made, 50, 0)});
    QVERIFY(!loss().header().badge().contains(QStringLiteral("log y")));
    area_->setLogY(true);
    area_->tick();
    QVERIFY2(loss().header().badge().contains(QStringLiteral("log y: 10 points")), qPrintable(loss().header().badge()));
    const QCPRange range = loss().canvas().y()->range();
    QVERIFY(range.lower > 0.0 && range.lower < 6.0 && range.upper > 50.0);
  }

  void smoothing_shows_its_formula_and_changes_no_value() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 100};
    made.loss = [](std::int64_t m, std::int64_t) { return m % 2 ? 1.0 : 3.0; };
    RunSeries& run = add(made, 100, 0);
    show({&run});
    area_->setSmoothing(0.98);
    const QImage image = picture();
    const QRect area = drawing(loss());
    // The smoothed line runs in full colour through the middle, the raw one pale to both ends.
    const QRect right(area.left() + area.width() / 2, area.top(), area.width() / 3, area.height());
    const QRect middle(right.left(), area.center().y() - 12, right.width(), 24);
    const QColor ink = seriesColor(lightColors(), 0);
    QVERIFY(count(image, ink, middle, 0.7) > 20);
    QCOMPARE(count(image, ink, right, 0.7), count(image, ink, middle, 0.7));
    QVERIFY(count(image, ink, right, 0.3) > 5 * count(image, ink, middle, 0.7));
    QVERIFY(area_->exportCsv().startsWith("# smoothed: s(t)"));
    QCOMPARE(run.series(Metric::updateLoss).value(10), 1.0);
    area_->setSmoothing(7.0);
    QCOMPARE(area_->smoothing(), 0.999);
  }

  void the_clock_moves_runs_onto_each_other() {
    const auto decay = [](double samples) { return 1.0 + 4.0 * std::exp(-samples / 400.0); };
    MadeRun few{.steps = 4, .ranks = 1, .updates = 80, .batchesPerEpoch = 1000};
    MadeRun many{.steps = 16, .ranks = 1, .updates = 20, .batchesPerEpoch = 1000};
    few.loss = many.loss = [&](std::int64_t m, std::int64_t) { return decay(static_cast<double>(m) * 4.0); };
    RunSeries& a = add(few, 80, 0);
    RunSeries& b = add(many, 20, 1);
    show({&a, &b});
    area_->setClock(Clock::sample);
    QCOMPARE(xRange().upper, 1280.0);
    QCOMPARE(a.latest(Clock::sample), b.latest(Clock::sample));
    area_->setClock(Clock::update);
    QCOMPARE(xRange().upper, 80.0);
    QVERIFY(b.latest(Clock::update) < a.latest(Clock::update));
  }

  void follows_live_data_until_the_user_zooms() {
    const MadeRun made{.updates = 400};
    RunSeries& run = add(made, 50, 0);
    run.setState(RunState::running);
    show({&run});
    QTRY_VERIFY(run.plannedEnd(Clock::update));
    QCOMPARE(xRange().upper, 400.0);  // the whole plan, from a tenth of it on
    QSignalSpy follow(area_.get(), &PlotArea::followLiveChanged);
    area_->zoomX(8.0);
    QCOMPARE(follow.count(), 1);
    QVERIFY(!area_->followLive());
    const QCPRange before = xRange();
    run.append(made.events(300, 50));
    QCOMPARE(xRange(), before);
    area_->setFollowLive(true);
    const QCPRange after = xRange();
    QVERIFY(after.contains(300.0));
    QVERIFY(std::abs(after.size() - before.size()) < 1e-9);
    area_->fit();
    QCOMPARE(xRange().lower, 0.0);
  }

  void without_follow_the_view_stands_still() {
    const MadeRun made{.updates = 4000};
    RunSeries& run = add(made, 20, 0);
    run.setState(RunState::running);
    show({&run});
    area_->setFollowLive(false);
    const QCPRange before = xRange();
    run.append(made.events(300, 20));
    QCOMPARE(xRange(), before);
    QVERIFY(before.upper < 300.0);
  }

  void fixed_margins_while_live() {
    MadeRun made{.ranks = 1, .updates = 2000};
    made.loss = [](std::int64_t m, std::int64_t) { return static_cast<double>(m) * 1234.5; };
    RunSeries& run = add(made, 2, 0);
    show({&run});
    const QRect before = loss().canvas().axisRect()->rect();
    run.append(made.events(2000, 2));
    area_->tick();
    QCOMPARE(loss().canvas().axisRect()->rect(), before);
    QCOMPARE(rate().canvas().axisRect()->left(), before.left());
    QCOMPARE(strip().canvas().axisRect()->right(), before.right());
  }

  void hidden_plots_do_not_draw() {
    RunSeries& run = add({}, 10, 0);
    show({&run});
    QTRY_VERIFY(run.plannedEnd(Clock::update));
    picture();
    QSignalSpy drawn(&loss().canvas(), &QCustomPlot::afterReplot);
    area_->hide();
    run.append(MadeRun{}.events(20, 10));
    area_->tick();
    QCoreApplication::sendPostedEvents();
    QCOMPARE(drawn.count(), 0);
    area_->show();
    QVERIFY(QTest::qWaitForWindowExposed(area_.get()));
    area_->tick();
    QTRY_VERIFY(drawn.count() > 0);
  }

  void nothing_new_draws_nothing() {
    RunSeries& run = add({}, 10, 0);
    show({&run});
    QTRY_VERIFY(run.plannedEnd(Clock::update));
    picture();
    QVERIFY(!loss().refreshIfNeeded());
    run.append(MadeRun{}.events(11, 10));
    QVERIFY(loss().refreshIfNeeded());
    QVERIFY(!loss().refreshIfNeeded());
    area_->setLogY(true);
    QVERIFY(loss().refreshIfNeeded());
  }

  void cursor_reads_the_recorded_values() {
    RunSeries& run = add({}, 40, 0);
    show({&run});
    QVERIFY(area_->readOut().isEmpty());
    area_->goTo(20.2);
    const QStringList lines = area_->readOut();
    QCOMPARE(lines.size(), 2);
    QCOMPARE(lines[0], QStringLiteral("update 20"));
    QVERIFY(lines[1].contains(valueText(run.series(Metric::updateLoss).value(19))));
    QVERIFY(lines[1].contains(QStringLiteral("learning rate")));
    QTest::keyClick(&loss().canvas(), Qt::Key_Right, Qt::ControlModifier);
    QCOMPARE(area_->readOut().first(), QStringLiteral("update 21"));
    QTest::keyClick(&loss().canvas(), Qt::Key_C);
    QCOMPARE(QGuiApplication::clipboard()->text(), area_->readOut().join(QLatin1Char('\n')));
    QTest::keyClick(&loss().canvas(), Qt::Key_Escape);
    QVERIFY(area_->readOut().isEmpty());
  }

  void smoothed_and_raw_are_both_read() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 100};
    made.loss = [](std::int64_t m, std::int64_t) { return m % 2 ? 1.0 : 3.0; };
    show({&add(made, 100, 3)});
    area_->setSmoothing(0.9);
    picture();
    area_->goTo(51.0);
    QCOMPARE(loss().header().items().size(), std::size_t{2});
    const QString read = loss().header().items()[1].text;
    // The mean of 1, 3, 1, ..., weighted by powers of 0.9, after a 1: 1 + 2 * 0.9 / 1.9.
    QVERIFY2(read.startsWith(QStringLiteral("1.947")), qPrintable(read));
    QVERIFY2(read.endsWith(QStringLiteral(" smoothed, 1.000 raw")), qPrintable(read));
  }

  void keys_work_in_a_focused_plot() {
    show({&add({}, 40, 0)});
    PlotCanvas& canvas = loss().canvas();
    QTest::keyClick(&canvas, Qt::Key_3);
    QVERIFY(area_->clock() == Clock::sample);
    QTest::keyClick(&canvas, Qt::Key_2);
    QVERIFY(area_->clock() == Clock::update);
    QTest::keyClick(&canvas, Qt::Key_L);
    QVERIFY(area_->logY());
    QTest::keyClick(&canvas, Qt::Key_S);
    QCOMPARE(area_->smoothing(), 0.5);
    QTest::keyClick(&canvas, Qt::Key_S, Qt::ShiftModifier);
    QCOMPARE(area_->smoothing(), 0.0);
    const double whole = canvas.x()->range().size();
    QTest::keyClick(&canvas, Qt::Key_Plus);
    QVERIFY(xRange().size() < whole);
    QTest::keyClick(&canvas, Qt::Key_Right);
    QVERIFY(!area_->followLive());
    QTest::keyClick(&canvas, Qt::Key_A);
    QCOMPARE(xRange().size(), whole);
    QVERIFY(area_->followLive());
  }

  void wheel_and_drag_zoom_and_backspace_returns() {
    show({&add({}, 40, 0)});
    PlotCanvas& canvas = loss().canvas();
    const QCPRange whole = canvas.x()->range();
    const QRect area = canvas.axisRect()->rect();
    QTest::mousePress(&canvas, Qt::LeftButton, Qt::NoModifier, area.topLeft() + QPoint(100, 20));
    QTest::mouseMove(&canvas, area.topLeft() + QPoint(200, 90));
    QTest::mouseMove(&canvas, area.topLeft() + QPoint(300, 120));
    QTest::mouseRelease(&canvas, Qt::LeftButton, Qt::NoModifier, area.topLeft() + QPoint(300, 120));
    QVERIFY(std::abs(xRange().size() / whole.size() - 200.0 / area.width()) < 0.02);
    QCOMPARE(rate().canvas().x()->range(), canvas.x()->range());
    QCOMPARE(strip().canvas().x()->range(), canvas.x()->range());
    QTest::keyClick(&canvas, Qt::Key_Backspace);
    QCOMPARE(xRange(), whole);
    QTest::keyClick(&canvas, Qt::Key_Backspace, Qt::ShiftModifier);
    QVERIFY(xRange().size() < whole.size());
    QTest::mouseDClick(&canvas, Qt::LeftButton, Qt::NoModifier, area.center());
    QCOMPARE(xRange(), whole);
    QWheelEvent wheel(area.center(), canvas.mapToGlobal(area.center()), {}, {0, 120}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(&canvas, &wheel);
    QVERIFY(xRange().size() < whole.size());
  }

  void the_strip_paints_each_kind_of_work() {
    show({&add({.updates = 6}, 6, 0)});
    area_->setClock(Clock::seconds);
    const QImage image = picture();
    const QRect area = drawing(strip());
    const ThemeColors& colors = lightColors();
    for (const QColor& kind : {colors.forward, colors.backward, colors.optimizerStep, colors.collective})
      QVERIFY2(count(image, kind, area, 0.93) > 20, qPrintable(kind.name()));
    // Backward takes twice as long as forward, and so does its colour.
    const double ratio =
        static_cast<double>(count(image, colors.backward, area, 0.93)) / count(image, colors.forward, area, 0.93);
    QVERIFY2(std::abs(ratio - 2.0) < 0.35, qPrintable(QString::number(ratio)));
    QVERIFY(strip().header().badge().startsWith(QStringLiteral("12 collectives")));
  }

  void a_dense_strip_shows_shares() {
    MadeRun made{.steps = 4, .ranks = 2, .updates = 3000, .batchesPerEpoch = 100000};
    show({&add(made, 3000, 0)});
    const QImage image = picture();
    const QRect area = drawing(strip());
    const double forward = count(image, lightColors().forward, area, 0.9);
    const double backward = count(image, lightColors().backward, area, 0.9);
    QVERIFY(forward > 1000.0);
    QVERIFY2(std::abs(backward / forward - 2.0) < 0.5, qPrintable(QString::number(backward / forward)));
  }

  void a_young_run_beside_a_long_one_shows_shares() {
    RunSeries& old = add({.updates = 3000, .batchesPerEpoch = 100000}, 3000, 0);
    RunSeries& young = add({.updates = 10}, 10, 1);
    show({&old, &young});
    QVERIFY(lanes().showsShares());
    show({&young});
    QVERIFY(!lanes().showsShares());
  }

  void a_column_of_a_whole_run_stands_for_whole_windows() {
    show({&add({.updates = 3000, .batchesPerEpoch = 100000}, 3000, 0)});
    const QRect area = drawing(strip());
    // 3000 windows: 32 of them take the six pixels that a column needs.
    QCOMPARE(lanes().windowsPerColumn(), std::size_t(32));
    const QImage image = picture();
    // All windows are alike, and so are the columns, but for the gaps between them.
    std::map<int, int> columns;  // by the height of backward
    for (int x = area.left() + 12; x < area.right() - 12; ++x)
      if (const int high = count(image, lightColors().backward, QRect(x, area.top(), 1, area.height() / 2), 0.93))
        ++columns[high];
    QVERIFY2(columns.size() <= 2, qPrintable(QString::number(columns.size())));
  }

  void waiting_within_a_collective_is_not_its_colour() {
    const MadeRun made{.updates = 6};
    const auto painted = [&](std::int64_t lateNs) {
      std::vector<RunEvent> events = made.events(6);
      for (RunEvent& event : events)
        if (auto* sync = std::get_if<Sync>(&event.body); sync && event.rank == 1) sync->begin_ns[0] += lateNs;
      runs_.push_back(std::make_unique<RunSeries>(QStringLiteral("run"), 0));
      runs_.back()->setPlan(made.plan());
      runs_.back()->append(events);
      show({runs_.back().get()});
      area_->setClock(Clock::seconds);
      const QRect area = drawing(strip());
      const QRect first(area.left(), area.top(), area.width(), area.height() / 2);
      return count(picture(), lightColors().collective, first, 0.93);
    };
    const int together = painted(0);
    const int late = painted(3'000'000);  // of 4 ms
    QVERIFY2(together > 100 && late > 0 && late < together / 2,
             qPrintable(QStringLiteral("%1, late %2").arg(together).arg(late)));
  }

  void a_collective_stands_out_of_its_lane() {
    show({&add({.updates = 6}, 6, 0)});
    area_->setClock(Clock::seconds);
    const QImage image = picture();
    const QRect area = drawing(strip());
    int lowest = 0, backward = 0;
    for (int y = area.top(); y < area.top() + area.height() / 2; ++y) {
      const QRect row(area.left(), y, area.width(), 1);
      if (count(image, lightColors().collective, row, 0.93) > 0) lowest = y;
      if (count(image, lightColors().backward, row, 0.93) > 0) backward = y;
    }
    QCOMPARE(lowest - backward, 3);
  }

  void the_axis_takes_one_row_and_its_title_hides_no_label() {
    show({&add({}, 40, 0)});
    PlotCanvas& canvas = strip().canvas();
    QVERIFY(canvas.height() - canvas.axisRect()->bottom() <= 28);
    area_->setClock(Clock::computeSeconds);
    const QImage image = picture();
    const QRect area = drawing(strip());
    const QRect row(area.left(), area.bottom() + 6, area.width(), 20);
    const int title = QFontMetrics(canvas.x()->labelFont()).horizontalAdvance(clockAxisTitle(Clock::computeSeconds));
    const QRect gap(row.right() - title - 7, row.top(), 6, row.height());
    QVERIFY(count(image, lightColors().muted, row) > 100);
    QCOMPARE(count(image, lightColors().muted, gap), 0);
  }

  void each_axis_has_lanes_of_its_own() {
    const MadeRun made{.ranks = 4, .updates = 12};
    RunSeries& run = add(made, 6, 0);
    show({&run});
    area_->setClock(Clock::seconds);
    QCOMPARE(SyncLanes::rowsOf(run).size(), std::size_t{4});
    // Tensor before pipeline, whichever is reported first; rank 3 uses the pipeline only. Each takes a forward's time.
    std::vector<RunEvent> events;
    for (const RunEvent& event : made.events(12, 6)) {
      events.push_back(event);
      if (const auto* spans = std::get_if<Operations>(&event.body);
          spans && spans->kind.front() == ComputeKind::forward)
        for (const char* axis : {"pipeline", "tensor"})
          if (event.rank != 3 || axis == std::string("pipeline"))
            events.push_back({event.rank, -1, 0,
                              Sync{{1},
                                   {spans->micro_step[0]},
                                   {axis},
                                   {"all_reduce"},
                                   {4096},
                                   {spans->begin_ns[0]},
                                   {spans->end_ns[0]}}});
    }
    run.append(events);
    area_->fit();
    QStringList rows;
    for (const SyncLanes::Row& row : SyncLanes::rowsOf(run))
      rows << QStringLiteral("%1 %2").arg(row.rank).arg(row.use ? run.timeline().axes()[row.use->axis]
                                                                : QStringLiteral("all"));
    QCOMPARE(rows.mid(0, 4), QStringList({QStringLiteral("0 all"), QStringLiteral("0 data"), QStringLiteral("0 tensor"),
                                          QStringLiteral("0 pipeline")}));
    QCOMPARE(rows.mid(12),
             QStringList({QStringLiteral("3 all"), QStringLiteral("3 data"), QStringLiteral("3 pipeline")}));
    picture();  // the strip asks for the height of more lanes
    const QImage image = picture();
    const QRect area = drawing(strip());
    for (const char* axis : {"data", "tensor", "pipeline"})
      QVERIFY2(count(image, axisColor(lightColors(), QLatin1String(axis)), area, 0.93) > 20, axis);
    QStringList legend;
    for (const HeaderItem& item : strip().header().items()) legend << item.text;
    QCOMPARE(legend, QStringList({QStringLiteral("forward"), QStringLiteral("backward"), QStringLiteral("step"),
                                  QStringLiteral("data axis"), QStringLiteral("tensor axis"),
                                  QStringLiteral("pipeline axis"), QStringLiteral("waiting")}));
    // Lanes stay high enough to be read; those that do not fit are below.
    const QCPRange shown = strip().canvas().y()->range();
    QVERIFY(shown.size() >= 4.0);
    QVERIFY(area.height() / shown.size() >= SyncLanes::leastLane + SyncLanes::laneGap - 0.5);
    auto* bar = strip().findChild<QScrollBar*>(QStringLiteral("syncScroll"));
    QVERIFY(bar->isVisible());
    bar->setValue(bar->maximum());
    area_->tick();
    QCOMPARE(strip().canvas().y()->range().upper, 15.0);
  }

  void the_theme_changes_live() {
    show({&add({}, 40, 0)});
    QVERIFY(count(picture(), seriesColor(lightColors(), 0), drawing(loss())) > 0);
    theme_->setMode(ThemeMode::dark);
    QTRY_VERIFY(isDark(area_->palette()));
    const QImage image = picture();
    QVERIFY(near(image.pixel(drawing(loss()).topRight() + QPoint(-3, 3)), darkColors().surface, 4));
    QVERIFY(count(image, seriesColor(darkColors(), 0), drawing(loss())) > 0);
    QCOMPARE(count(image, seriesColor(lightColors(), 0), drawing(loss()), 0.8), 0);
  }

  void pictures_are_written_whole_or_not_at_all() {
    show({&add({}, 40, 0)});
    const QTemporaryDir folder;
    for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
      const QString file = folder.filePath(QLatin1String(name));
      QCOMPARE(writeFigure(area_->figure({}), file), QString());
      QFile written(file);
      QVERIFY(written.open(QIODevice::ReadOnly));
      QVERIFY(written.size() > 2000);
    }
    QVERIFY(writeFigure(area_->figure({}), folder.filePath(QStringLiteral("a.xyz"))).contains(QStringLiteral(".png")));
    const QString nowhere = folder.filePath(QStringLiteral("missing/a.png"));
    QVERIFY(writeFigure(area_->figure({}), nowhere).contains(nowhere));
    QVERIFY(!QFile::exists(nowhere));
    const QString small = folder.filePath(QStringLiteral("small.pdf"));
    QVERIFY(writeFigure(area_->figure({40.0, 40.0, 12.0}), small).contains(QStringLiteral("no room in 40 x 40 mm")));
    QVERIFY(!QFile::exists(small));
  }

  void a_figure_says_which_run_is_which_and_has_its_size() {
    RunSeries& few = add({}, 40, 0);
    RunSeries& many = add({.steps = 8}, 20, 1);
    few.setName(QStringLiteral("Demo"));
    many.setName(QStringLiteral("Demo"));
    show({&few, &many});
    area_->setSmoothing(0.9);
    const Figure figure = area_->figure({120.0, 90.0, 7.0});
    QCOMPARE(figure.title, QStringLiteral("Demo"));
    QCOMPARE(figure.legend.size(), std::size_t{2});
    QVERIFY(figure.legend[0].text.contains(QStringLiteral("N = 4")));
    QVERIFY(figure.legend[1].text.contains(QStringLiteral("N = 8")));
    QVERIFY2(figure.caption.contains(QStringLiteral("N = 4, 8")), qPrintable(figure.caption));
    QVERIFY(figure.caption.contains(smoothingFormula(0.9)));

    const QImage picture = paintFigure(figure, 300.0);
    QVERIFY(std::abs(picture.width() - 120.0 / 25.4 * 300.0) < 5.0);
    QVERIFY(std::abs(picture.height() - 90.0 / 25.4 * 300.0) < 5.0);
    QVERIFY(std::abs(picture.dotsPerMeterX() * 0.0254 - 300.0) < 0.1);
    QVERIFY(count(picture, seriesColor(lightColors(), 0), picture.rect()) > 500);
    QVERIFY(count(picture, seriesColor(lightColors(), 1), picture.rect()) > 500);
    const QByteArray svg = svgOf(figure);
    QVERIFY(svg.contains("width=\"120mm\"") || svg.contains("width=\"120.") || svg.contains("width=\"119."));
    for (const char* text : {"N = 4", "N = 8", "Updates", "Learning rate"}) QVERIFY2(svg.contains(text), text);
    const QByteArray pdf = pdfOf(figure);
    // 120 mm are 340.2 points.
    QVERIFY(pdf.contains("/MediaBox [0 0 340"));
  }

  void a_figure_is_for_paper_in_every_theme() {
    show({&add({}, 40, 0)});
    theme_->setMode(ThemeMode::dark);
    QTRY_VERIFY(isDark(area_->palette()));
    const QImage figure = paintFigure(area_->figure({}), 96.0);
    QVERIFY(near(figure.pixel(2, 2), lightColors().surface, 4));
    for (int y = 0; y < figure.height(); y += 3)
      QVERIFY(!near(figure.pixel(figure.width() / 2, y), darkColors().surface, 4));
    QVERIFY(near(picture().pixel(drawing(loss()).topRight() + QPoint(-3, 3)), darkColors().surface, 4));
  }

  void plots_are_added_arranged_and_removed() {
    RunSeries& run = add({}, 40, 2);
    run.append({{0, -1, MadeRun::ns(1.0), Gauge{.rss_bytes = 5 << 20}},
                {1, -1, MadeRun::ns(1.0), Gauge{.rss_bytes = 6 << 20}}});
    show({&run});
    const QStringList usual{QStringLiteral("lossPlot"), QStringLiteral("learningRatePlot"),
                            QStringLiteral("syncStrip")};
    QCOMPARE(area_->shownPlots(), usual);
    QSignalSpy changed(area_.get(), &PlotArea::shownPlotsChanged);
    for (const char* name : {"gradNormPlot", "throughputPlot", "tokensPlot", "memoryPlot"}) {
      PlotView& view = *area_->findChild<PlotView*>(QLatin1String(name));
      QVERIFY(!view.isVisible());
      area_->setPlotShown(&view, true);
      const QImage image = picture();
      QVERIFY2(view.isVisible() && count(image, seriesColor(lightColors(), 2), drawing(view)) > 3, name);
      QVERIFY(view.canvas().showsClock());
      QVERIFY(!strip().canvas().showsClock());
      area_->goTo(40.0);
      QVERIFY2(view.header().items().size() >= 1, name);
      area_->setPlotShown(&view, false);
      QVERIFY(!view.isVisible());
    }
    QCOMPARE(changed.count(), 8);
    QSignalSpy menu(area_.get(), &PlotArea::menuRequested);
    rate().canvas().setFocus();
    QTest::keyClick(&rate().canvas(), Qt::Key_F10, Qt::ShiftModifier);
    QContextMenuEvent right(QContextMenuEvent::Mouse, QPoint(5, 5), strip().header().mapToGlobal(QPoint(5, 5)));
    QCoreApplication::sendEvent(&strip(), &right);
    QCOMPARE(menu.count(), 2);
    QCOMPARE(menu[0][0].value<PlotView*>(), &rate());
    QCOMPARE(menu[1][0].value<PlotView*>(), &strip());
    area_->movePlot(&strip(), -2);
    QCOMPARE(area_->shownPlots().first(), QStringLiteral("syncStrip"));
    picture();
    QVERIFY(strip().y() < loss().y());
    QVERIFY(rate().canvas().showsClock());
    for (PlotView* view : area_->allViews()) area_->setPlotShown(view, false);
    QCOMPARE(area_->shownPlots().size(), 1);
    area_->setShownPlots({QStringLiteral("of a later version")});
    QCOMPARE(area_->shownPlots(), usual);
  }

  void two_strips_show_two_runs() {
    RunSeries& first = add({.updates = 6}, 6, 0);
    RunSeries& second = add({.steps = 2, .updates = 6}, 6, 1);
    PlotView& other = *area_->findChild<PlotView*>(QStringLiteral("otherSyncStrip"));
    area_->setPlotShown(&other, true);
    area_->resize(800, 400);
    show({&first, &second});
    picture();
    for (const PlotView* each : {static_cast<PlotView*>(&strip()), &other})
      QVERIFY(each->canvas().geometry().bottom() < each->height());  // no lane is cut off
    QCOMPARE(strip().header().items().front().seriesIndex, 1);
    QCOMPARE(other.header().items().front().seriesIndex, 0);
    QVERIFY(other.header().badge() != strip().header().badge());
  }

  void a_double_click_and_keys_show_windows() {
    show({&add({}, 40, 0)});
    PlotCanvas& canvas = strip().canvas();
    const QRect area = canvas.axisRect()->rect();
    const auto shows = [&](double from, double to) {
      const QCPRange range = xRange();
      return range.lower < from && range.lower > from - 0.2 && range.upper > to && range.upper < to + 0.2;
    };
    const QPoint at(static_cast<int>(canvas.x()->coordToPixel(20.5)), area.center().y());
    QTest::mouseDClick(&canvas, Qt::LeftButton, Qt::NoModifier, at);
    QVERIFY(shows(20.0, 21.0));
    QTest::keyClick(&canvas, Qt::Key_N);
    QVERIFY(shows(21.0, 22.0));
    QTest::keyClick(&canvas, Qt::Key_P);
    QTest::keyClick(&canvas, Qt::Key_P);
    QVERIFY(shows(19.0, 20.0));
    QTest::keyClick(&canvas, Qt::Key_A);
    QVERIFY(shows(0.0, 40.0) || xRange().size() == 40.0);
    area_->goTo(7.5);
    QTest::keyClick(&canvas, Qt::Key_W);
    QVERIFY(shows(7.0, 8.0));
    // Over samples a window is as long as it was trained on.
    area_->setClock(Clock::sample);
    area_->goTo(100.0);
    QTest::keyClick(&canvas, Qt::Key_W);
    QCOMPARE(std::lround(xRange().size() / 1.12), 32L);
  }

  void the_strip_says_what_another_way_of_reducing_would_send() {
    RunSeries& run = add({.updates = 10, .batchesPerEpoch = 1000}, 10, 0);
    show({&run});
    // Two ranks reduce 4096 bytes once in each of ten windows of four micro-steps.
    QCOMPARE(strip().header().badge(), QStringLiteral("20 collectives, %1 (every micro-step: %2)")
                                           .arg(bytesText(2 * 4096 * 10), bytesText(2 * 4096 * 40)));
  }

  void a_plot_is_also_a_table() {
    RunSeries& few = add({}, 40, 0);
    RunSeries& many = add({.steps = 8}, 20, 1);
    show({&few, &many});
    loss().canvas().setFocus();
    QTest::keyClick(&loss().canvas(), Qt::Key_T);
    auto* window = area_->findChild<PlotTableWindow*>();
    QVERIFY(window && window->isVisible());
    QCOMPARE(window->windowTitle(), QStringLiteral("Loss as a table"));
    auto* view = window->findChild<QTableView*>();
    const QAbstractItemModel& model = *view->model();
    QCOMPARE(model.rowCount(), 40);
    QCOMPARE(model.columnCount(), 3);
    QCOMPARE(model.headerData(0, Qt::Horizontal).toString(), clockAxisTitle(Clock::update));
    QCOMPARE(model.index(9, 0).data().toString(), QStringLiteral("10"));
    QCOMPARE(model.index(9, 1).data().toString(), valueText(few.series(Metric::updateLoss).value(9)));
    QCOMPARE(model.index(9, 2).data().toString(), valueText(many.series(Metric::updateLoss).value(9)));
    QCOMPARE(model.index(30, 2).data().toString(), QString());
    view->selectRow(9);
    QTest::keyClick(window, Qt::Key_C, Qt::ControlModifier);
    QVERIFY(QGuiApplication::clipboard()->text().contains(QStringLiteral("\n10\t")));
    // Every plot has one; the strip's rows are its windows, rank by rank.
    for (PlotView* plot : area_->allViews()) QVERIFY2(!plot->table().headers.isEmpty(), qPrintable(plot->objectName()));
    const PlotTable lanes = strip().table();
    QCOMPARE(lanes.rows, std::size_t{40});
    QCOMPARE(lanes.cell(1, 1), QStringLiteral("1"));
    QCOMPARE(lanes.cell(1, 2), spanText(8 * MadeRun{}.forward));
    QCOMPARE(lanes.cell(1, 7), bytesText(4096));
    window->close();
  }

  void high_resolution_pictures_have_more_pixels_not_more_content() {
    show({&add({}, 40, 0)});
    const QImage one = area_->renderImage(1.0);
    const QImage two = area_->renderImage(2.0);
    QCOMPARE(two.size(), one.size() * 2);
    const auto share = [](const QImage& image) {
      return static_cast<double>(count(image, seriesColor(lightColors(), 0), image.rect())) /
             (image.width() * image.height());
    };
    QVERIFY(share(one) > 0.0);
    QVERIFY2(share(two) > share(one) * 0.4 && share(two) < share(one) * 2.5,
             qPrintable(QString::number(share(two) / share(one))));
  }

  void a_chart_introduces_itself() {
    show({&add({}, 40, 0), &add({.steps = 8}, 20, 1)});
    picture();
    QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(&loss().canvas());
    QVERIFY(chart != nullptr);
    QCOMPARE(chart->role(), QAccessible::Chart);
    QVERIFY(!chart->text(QAccessible::Name).isEmpty());
    const QString summary = chart->text(QAccessible::Description);
    QVERIFY2(summary.startsWith(QStringLiteral("loss: 2 run")) && summary.contains(QStringLiteral("at update 20")),
             qPrintable(summary));
    area_->goTo(10.0);
    QVERIFY(chart->text(QAccessible::Value).startsWith(QStringLiteral("update 10")));
    QCOMPARE(area_->summaries().size(), 3);
  }

  void a_destroyed_run_leaves_the_plots() {
    RunSeries& kept = add({}, 40, 0);
    RunSeries& gone = add({.steps = 8}, 20, 1);
    show({&kept, &gone});
    area_->setSmoothing(0.9);
    picture();
    QVERIFY(&gone == runs_.back().get());
    runs_.pop_back();
    const QImage image = picture();
    QCOMPARE(area_->runs(), QList<RunSeries*>{&kept});
    QCOMPARE(count(image, seriesColor(lightColors(), 1), drawing(loss()), 0.12), 0);
  }

  void a_constant_has_air_around_it() {
    MadeRun made{.updates = 20};
    made.loss = [](std::int64_t, std::int64_t) { return 1e-4; };
    show({&add(made, 20, 0)});
    const QCPRange range = loss().canvas().y()->range();
    QVERIFY(range.lower < 1e-4 && range.upper > 1e-4 && range.size() < 1e-4);
  }

  void the_update_loss_is_thicker_than_its_trace() {
    MadeRun made{.steps = 2, .ranks = 1, .updates = 20, .batchesPerEpoch = 1000};
    made.loss = [](std::int64_t m, std::int64_t) { return m % 2 == 0 ? 3.0 : 1.0; };
    RunSeries& run = add(made, 20, 0);
    show({&run});
    const QImage image = picture();
    const QRect area = drawing(loss());
    PlotCanvas& canvas = loss().canvas();
    const int y = area.top() + static_cast<int>(canvas.y()->coordToPixel(2.0)) - canvas.axisRect()->top();
    const QRect around(area.left() + area.width() / 2, y - 4, 60, 9);
    const int ground = qGray(lightColors().surface.rgb());
    const double ink = ground - qGray(seriesColor(lightColors(), 0).rgb());
    double inked = 0.0;  // pixels covered, a column
    for (int row = around.top(); row <= around.bottom(); ++row)
      for (int x = around.left(); x <= around.right(); ++x)
        inked += (ground - qGray(image.pixel(x, row))) / ink / around.width();
    QVERIFY2(inked > 1.7 && inked < 3.2, qPrintable(QString::number(inked)));
  }

  void a_dashed_run_has_gaps_in_pictures() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 20, .batchesPerEpoch = 1000};
    made.loss = [](std::int64_t, std::int64_t) { return 2.0; };
    RunSeries& whole = add(made, 20, 0);
    show({&whole});
    const auto inked = [this] {
      return count(area_->renderImage(2.0), seriesColor(lightColors(), 0), {0, 0, 1600, 500});
    };
    const int solid = inked();
    whole.setColorIndex(8);  // the first colour again, dashed
    area_->tick();
    const int dashed = inked();
    QVERIFY2(dashed > solid / 4 && dashed < solid * 9 / 10,
             qPrintable(QStringLiteral("%1 of %2").arg(dashed).arg(solid)));
  }

  void what_was_not_drawn_is_told() {
    RunSeries& run = add({}, 10, 0);
    show({&run});
    QVERIFY(!loss().header().badge().contains(QStringLiteral("not drawn")));
    run.setTracesNotDrawn(12);
    area_->tick();
    QVERIFY2(loss().header().badge().contains(QStringLiteral("12 traces not drawn; all are in the folder")),
             qPrintable(loss().header().badge()));
  }

  void a_view_that_does_not_follow_stands_still() {
    const MadeRun made{.updates = 40000};
    RunSeries& run = add(made, 50, 0);
    run.setState(RunState::running);
    show({&run});
    const QCPRange before = loss().canvas().x()->range();
    area_->setFollowLive(false);
    run.append(made.events(900, 50));
    QCOMPARE(xRange(), before);
    area_->setClock(Clock::microStep);
    const QCPRange steps = xRange();
    QVERIFY(steps.contains(3600.0));
    run.append(made.events(3000, 900));
    QCOMPARE(xRange(), steps);
    area_->fit();
    QVERIFY(xRange().contains(12000.0));
  }

  void the_focused_plot_is_marked() {
    show({&add({}, 10, 0)});
    area_->activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(area_.get()));
    area_->setFocus();
    QVERIFY(loss().canvas().hasFocus());
    const auto marked = [](PlotView& view) {
      const QImage image = view.canvas().grab().toImage();
      return near(image.pixel(1, 1), lightColors().accent) &&
             near(image.pixel(image.width() - 2, image.height() / 2), lightColors().accent);
    };
    QVERIFY(marked(loss()));
    QVERIFY(!marked(rate()));
    rate().canvas().setFocus();
    QVERIFY(!marked(loss()));
    QVERIFY(marked(rate()));
  }

 private:
  void show(const QList<RunSeries*>& runs) {
    area_->setRuns(runs);
    area_->setFocusedRun(runs.isEmpty() ? nullptr : runs.last());
    area_->tick();
  }

  /// What the x axis shows now.
  QCPRange xRange() {
    area_->tick();
    return loss().canvas().x()->range();
  }
  QImage picture() {
    area_->tick();
    QCoreApplication::sendPostedEvents();
    return area_->grab().toImage();
  }
  LossPlot& loss() { return *area_->findChild<LossPlot*>(); }
  SyncStrip& strip() { return *area_->findChild<SyncStrip*>(QStringLiteral("syncStrip")); }
  SyncLanes& lanes() { return *strip().canvas().findChild<SyncLanes*>(); }
  LearningRatePlot& rate() { return *area_->findChild<LearningRatePlot*>(); }
  /// A plot's drawing area in the coordinates of picture().
  QRect drawing(PlotView& view) const {
    const QRect rect = view.canvas().axisRect()->rect();
    return {view.canvas().mapTo(area_.get(), rect.topLeft()), rect.size()};
  }

  RunSeries& add(const MadeRun& made, std::int64_t upTo, int color) {
    runs_.push_back(std::make_unique<RunSeries>(QStringLiteral("run-%1").arg(color), color));
    runs_.back()->setPlan(made.plan());
    if (upTo > 0) runs_.back()->append(made.events(upTo));
    return *runs_.back();
  }

  std::unique_ptr<Theme> theme_;
  std::unique_ptr<PlotArea> area_;
  std::vector<std::unique_ptr<RunSeries>> runs_;
};

QTEST_MAIN(TestPlots)
#include "test_plots.moc"
