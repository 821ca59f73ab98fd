// SPDX-License-Identifier: GPL-3.0-or-later
// The stack of plots: the sync strip and its windows, which plots there are, and in which turns they are drawn.
#include <QClipboard>
#include <QContextMenuEvent>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QTimer>
#include <map>

#include "canvas/curve_layer.h"
#include "canvas/lane_clock.h"
#include "canvas/plot_header.h"
#include "canvas/plot_table.h"
#include "kit/number_text.h"
#include "plots_fixture.h"
#include "points/sync_timeline.h"
#include "support/test_program.h"

namespace test_plot_stack {

using namespace accrue;
using namespace accrue::ui;

class TestPlotStack : public QObject, PlotsFixture {
  Q_OBJECT

 private Q_SLOTS:
  void init() { begin(); }

  void cleanup() { end(); }

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
    QVERIFY(strip().header().badge().startsWith(QStringLiteral("6 gradient reductions, ")));
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

  void a_dense_strip_paints_what_trains_no_weights_in_a_grey_of_its_own() {
    const MadeRun made{.steps = 4, .ranks = 2, .updates = 3000, .batchesPerEpoch = 100000};
    const auto painted = [&](CollectivePurpose purpose) {
      std::vector<RunEvent> events = made.events(3000);
      for (RunEvent& event : events)
        if (auto* sync = std::get_if<Sync>(&event.body)) std::ranges::fill(sync->purpose, purpose);
      runs_.push_back(std::make_unique<RunSeries>(QStringLiteral("run"), 0));
      runs_.back()->setPlan(made.plan());
      runs_.back()->append(events);
      show({runs_.back().get()});
      const QImage image = picture();
      QStringList legend;
      for (const HeaderItem& item : strip().header().items()) legend << item.text;
      return std::tuple(count(image, lightColors().collective, drawing(strip()), 0.93),
                        count(image, lightColors().muted, drawing(strip()), 0.93),
                        legend.contains(QStringLiteral("agreeing or checking")));
    };
    const auto [brown, noGrey, unnamed] = painted(CollectivePurpose::gradients);
    QVERIFY(lanes().showsShares());
    QVERIFY2(brown > 1000 && noGrey == 0 && !unnamed, qPrintable(QStringLiteral("%1, %2").arg(brown).arg(noGrey)));
    for (const CollectivePurpose aside : {CollectivePurpose::agreement, CollectivePurpose::check,
                                          CollectivePurpose::evaluation, CollectivePurpose::checkpoint}) {
      const auto [noBrown, grey, named] = painted(aside);
      QVERIFY2(noBrown == 0 && grey > 1000 && named, qPrintable(QStringLiteral("%1, %2").arg(noBrown).arg(grey)));
    }
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
    const MadeRun made{.updates = 3};
    struct Painted {
      int collective = 0;
      int waiting = 0;
    };
    const auto painted = [&](std::int64_t lateNs) {
      std::vector<RunEvent> events = made.events(3);
      for (RunEvent& event : events)
        if (auto* sync = std::get_if<Sync>(&event.body); sync && event.rank == 1) sync->begin_ns[0] += lateNs;
      runs_.push_back(std::make_unique<RunSeries>(QStringLiteral("run"), 0));
      runs_.back()->setPlan(made.plan());
      runs_.back()->append(events);
      show({runs_.back().get()});
      area_->setClock(Clock::seconds);
      const QRect area = drawing(strip());
      const QRect first(area.left(), area.top(), area.width(), area.height() / 2);
      const QImage image = picture();
      return Painted{count(image, lightColors().collective, first, 0.93),
                     count(image, lightColors().waiting, first, 0.93)};
    };
    const Painted together = painted(0);
    const Painted late = painted(3'000'000);  // of 4 ms
    QVERIFY2(together.collective > 100 && late.collective > 0 && late.collective < together.collective / 2,
             qPrintable(QStringLiteral("%1, late %2").arg(together.collective).arg(late.collective)));
    // The rest of the transfer is hatched.
    const int freed = together.collective - late.collective;
    QVERIFY2(late.waiting - together.waiting > freed / 16,
             qPrintable(QStringLiteral("%1, late %2").arg(together.waiting).arg(late.waiting)));
  }

  /// Two micro-steps of a second for each pass, with a pause of 100 s between them and one of 50 s within the second.
  void a_pause_has_no_place_but_on_wall_time() {
    const auto work = [](std::int64_t micro, ComputeKind kind, std::int64_t from) {
      return Operations{{kind}, {micro}, {0}, {from * 1'000'000'000}, {(from + 1) * 1'000'000'000}};
    };
    SyncTimeline timeline;
    timeline.take(0, work(1, ComputeKind::forward, 10));
    timeline.take(0, work(1, ComputeKind::backward, 11));
    timeline.pauseAt(12.5);
    timeline.take(0, work(2, ComputeKind::forward, 112));
    timeline.pauseAt(113.5);
    timeline.pauseAt(120.0);
    timeline.take(0, work(2, ComputeKind::backward, 163));
    const Lane& lane = timeline.lanes().at(0);
    const ClockTable none;
    const LaneClock steps(lane, none, Clock::microStep);
    QCOMPARE(steps.toX(11.0), 0.5);
    QCOMPARE(steps.toX(12.0), 1.0);
    QCOMPARE(steps.toX(60.0), 1.0);
    QCOMPARE(steps.toX(113.0), 1.5);
    QCOMPARE(steps.toX(163.0), 1.5);
    QCOMPARE(steps.toX(164.0), 2.0);
    QVERIFY(std::abs(steps.toTime(0.25) - 10.5) < 1e-9);
    QVERIFY(std::abs(steps.toTime(1.25) - 112.5) < 1e-9);
    QVERIFY(std::abs(steps.toTime(1.75) - 163.5) < 1e-9);
    QCOMPARE(steps.shown(10.0, 164.0), 4.0);
    const LaneClock wall(lane, none, Clock::seconds);
    QCOMPARE(wall.toX(60.0), 60.0);
    QCOMPARE(wall.shown(10.0, 164.0), 154.0);
    // Micro-steps repeated after a resume bring their own pauses.
    timeline.rewind(1);
    timeline.take(0, work(2, ComputeKind::forward, 12));
    timeline.take(0, work(2, ComputeKind::backward, 13));
    QCOMPARE(LaneClock(timeline.lanes().at(0), none, Clock::microStep).shown(10.0, 14.0), 4.0);
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
    QCOMPARE(lowest + 1 - backward, 3);  // the last row is its frame
  }

  void a_collective_has_a_frame_where_there_is_room_for_one() {
    show({&add({.updates = 6}, 6, 0)});
    area_->setClock(Clock::seconds);
    const QImage image = picture();
    const QRect area = drawing(strip());
    const auto isText = [&](int x, int y) { return near(image.pixel(x, y), lightColors().text, 2); };
    int framed = 0, bare = 0;
    for (int y = area.top(); y < area.top() + area.height() / 2; ++y) {
      int from = -1;  // start of a collective's colour in this row
      for (int x = area.left(); x < area.right(); ++x) {
        const bool inside = near(image.pixel(x, y), lightColors().collective, 2);
        if (inside && from < 0) from = x;
        if (inside || from < 0) continue;
        (isText(from - 1, y) && isText(x, y) ? framed : bare) += 1;
        from = -1;
      }
    }
    QVERIFY2(framed > 50 && bare == 0, qPrintable(QStringLiteral("%1 framed, %2 bare").arg(framed).arg(bare)));
  }

  void an_evaluations_mark_at_the_edge_of_a_plot_is_whole() {
    RunSeries& run = add({}, 40, 0);
    run.append({{0, -1, MadeRun::ns(98.0), Evaluation{.update = 40, .loss = 4.0}}});  // far above the curve
    show({&run});
    area_->setClock(Clock::update);
    area_->fit();
    const QImage image = picture();
    PlotCanvas& canvas = loss().canvas();
    const QPoint centre =
        canvas.mapTo(area_.get(), QPoint(static_cast<int>(std::lround(canvas.x()->coordToPixel(40.0))),
                                         static_cast<int>(std::lround(canvas.y()->coordToPixel(4.0)))));
    QVERIFY2(std::abs(centre.x() - drawing(loss()).right()) <= 1, qPrintable(QString::number(centre.x())));
    const auto painted = [&](int from) {
      return count(image, seriesColor(lightColors(), 0), QRect(centre.x() + from, centre.y() - 5, 5, 11));
    };
    const int before = painted(-5), after = painted(1);
    QVERIFY2(before > 10 && after > 10 && std::abs(before - after) <= 6,
             qPrintable(QStringLiteral("%1 and %2").arg(before).arg(after)));
  }

  void the_axis_takes_one_row_and_its_title_hides_no_label() {
    show({&add({}, 40, 0)});
    PlotCanvas& canvas = strip().canvas();
    QVERIFY(canvas.height() - canvas.axisRect()->bottom() <= 28);
    // A long title in a narrow plot has no room between two labels.
    area_->setClock(Clock::computeSeconds);
    area_->resize(420, 600);
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
                                   {CollectivePurpose::activations},
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
    frame();
    QCOMPARE(strip().canvas().y()->range().upper, 15.0);
  }

  void new_data_draws_one_plot_in_a_turn_and_a_changed_view_all_at_once() {
    const MadeRun made{.updates = 40000};
    RunSeries& run = add(made, 50, 0);
    run.setState(RunState::running);
    show({&run});
    QTRY_VERIFY(run.plannedEnd(Clock::update));
    area_->setFollowLive(false);
    frame();
    int turn = 0;
    QTimer beat;
    connect(&beat, &QTimer::timeout, &beat, [&turn] { ++turn; });
    beat.start(0);
    std::vector<std::pair<QString, int>> drawn;
    for (const PlotView* view : area_->allViews())
      connect(&view->canvas(), &QCustomPlot::afterReplot, &beat,
              [&drawn, &turn, name = view->objectName()] { drawn.emplace_back(name, turn); });

    // Frames that come with more data before the last plot's turn do not keep it waiting.
    for (int update = 50; update < 60; ++update) {
      run.append(made.events(update + 1, update));
      area_->tick();
    }
    QCOMPARE(drawn.size(), 0U);
    QTRY_COMPARE(drawn.size(), 3U);
    for (qsizetype i = 0; i < 3; ++i) {
      QCOMPARE(drawn[i].first, area_->shownPlots()[i]);
      QVERIFY(i == 0 || drawn[i].second > drawn[i - 1].second);
    }

    drawn.clear();
    area_->panX(0.1);
    area_->tick();
    QCOMPARE(drawn.size(), 3U);
  }

  void the_loss_has_the_most_room_and_the_strip_more_than_the_rate() {
    show({&add({}, 40, 0)});
    picture();
    const double whole = area_->height();
    QVERIFY(std::abs(loss().height() / whole - 0.45) < 0.03);
    QVERIFY(std::abs(rate().height() / whole - 0.20) < 0.03);
    QVERIFY(std::abs(strip().height() / whole - 0.35) < 0.03);
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

  void what_only_some_runs_measure_has_a_plot() {
    RunSeries& run = add({.updates = 8}, 0, 2);
    RunSeries& other = add({.updates = 8}, 8, 1);
    std::vector<RunEvent> events;
    for (std::int64_t u = 1; u <= 8; ++u)
      events.push_back({0, u, MadeRun::ns(double(u)),
                        Update{.update = u,
                               .micro_step = 4 * u,
                               .loss = 3.0,
                               .outcome = u == 4 ? StepOutcome::skipped_overflow : StepOutcome::updated,
                               .losses = {{"lm loss", 2.0}, {"sop loss", 1.0}},
                               .loss_scale = u < 4 ? 65536.0 : 32768.0,
                               .update_norm = 0.5,
                               .parameter_norm = 12.0,
                               .gradient_zeros = 3,
                               .scalars = {{"accuracy", 0.75}}}});
    run.append(events);
    show({&other, &run});
    area_->setClock(Clock::update);
    for (const char* name :
         {"lossPartsPlot", "lossScalePlot", "updateNormPlot", "weightNormPlot", "gradientZerosPlot", "scalarsPlot"}) {
      PlotView& view = *area_->findChild<PlotView*>(QLatin1String(name));
      area_->setPlotShown(&view, true);
      area_->fit();
      const QImage image = picture();
      QVERIFY2(count(image, seriesColor(lightColors(), 2), drawing(view)) > 3, name);
      QVERIFY2(count(image, seriesColor(lightColors(), 1), drawing(view)) == 0, name);
      area_->goTo(7.0);  // a cursor at 4 would cover the mark there
      QVERIFY2(!view.header().items().empty(), name);
      QVERIFY2(!view.summary().isEmpty() && view.table().rows > 0, name);
      if (QLatin1String(name) == QLatin1String("lossScalePlot"))
        QVERIFY(count(image, lightColors().failed, drawing(view)) > 3);
      area_->setPlotShown(&view, false);
    }
    PlotView& parts = *area_->findChild<PlotView*>(QStringLiteral("lossPartsPlot"));
    QVERIFY2(parts.valueAt(run, 4.0).contains(QStringLiteral("sop loss 1")), qPrintable(parts.valueAt(run, 4.0)));
    QVERIFY(parts.valueAt(other, 4.0).isEmpty());
    PlotView& scalars = *area_->findChild<PlotView*>(QStringLiteral("scalarsPlot"));
    QVERIFY2(scalars.valueAt(run, 4.0).contains(QStringLiteral("accuracy 0.75")),
             qPrintable(scalars.valueAt(run, 4.0)));
  }

  void every_part_of_a_loss_has_a_line_of_its_own_and_survives_a_second_reading() {
    RunSeries& run = add({.updates = 8}, 0, 0);
    std::vector<RunEvent> events;
    for (std::int64_t u = 1; u <= 8; ++u) {
      const NamedLosses losses{{"a", 3.0}, {"b", 2.0}, {"c", 1.0}};
      events.push_back({0, 2 * u, MadeRun::ns(double(u)), Update{.update = u, .micro_step = 4 * u, .losses = losses}});
      events.push_back({0, 2 * u + 1, MadeRun::ns(double(u)), Evaluation{.update = u, .losses = losses}});
    }
    run.append(events);
    show({&run});
    area_->setClock(Clock::update);
    PlotView& view = *area_->findChild<PlotView*>(QStringLiteral("lossPartsPlot"));
    area_->setPlotShown(&view, true);
    area_->fit();
    picture();
    const auto& lines = view.canvas().findChild<CurveLayer*>()->lines();
    QCOMPARE(lines.size(), std::size_t{6});
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        QVERIFY(lines[i].pen.color() != lines[k].pen.color() ||
                lines[i].pen.dashPattern() != lines[k].pen.dashPattern());
    // A table that is open shows what it showed, or nothing; never what is gone.
    const PlotTable open = view.table();
    QCOMPARE(open.cell(0, 1), QStringLiteral("3.000"));
    run.clear();
    QCOMPARE(open.cell(0, 1), QString());
    QCOMPARE(view.table().rows, std::size_t{0});
  }

  void the_loss_scale_is_read_in_powers_of_two() {
    PlotView& view = *area_->findChild<PlotView*>(QStringLiteral("lossScalePlot"));
    QVector<double> ticks;
    QVector<QString> labels;
    view.canvas().y()->ticker()->generate(QCPRange(20000.0, 140000.0), QLocale::c(), QLatin1Char('g'), 6, ticks,
                                          nullptr, &labels);
    QCOMPARE(ticks, (QVector<double>{32768.0, 65536.0, 131072.0}));
    QCOMPARE(labels, (QVector<QString>{QStringLiteral("2¹⁵"), QStringLiteral("2¹⁶"), QStringLiteral("2¹⁷")}));
    // Of many, as many as there is room for.
    view.canvas().y()->ticker()->generate(QCPRange(1.0, 1e6), QLocale::c(), QLatin1Char('g'), 6, ticks, nullptr,
                                          &labels);
    QVERIFY(ticks.size() >= 3 && ticks.size() <= 6);
  }

  void a_plot_can_be_put_beside_the_loss() {
    area_->showBesideLoss(QLatin1String(updateNormPlot));
    QCOMPARE(area_->shownPlots(), (QStringList{QStringLiteral("lossPlot"), QStringLiteral("updateNormPlot"),
                                               QStringLiteral("learningRatePlot"), QStringLiteral("syncStrip")}));
    area_->showBesideLoss(QLatin1String(updateNormPlot));
    area_->showBesideLoss(QStringLiteral("of a later version"));
    QCOMPARE(area_->shownPlots().size(), 4);
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

  void a_strip_of_a_run_that_is_not_shown_says_whose_it_is() {
    RunSeries& hidden = add({.updates = 6}, 6, 0);
    RunSeries& shown = add({.steps = 2, .updates = 6}, 6, 1);
    PlotView& other = *area_->findChild<PlotView*>(QStringLiteral("otherSyncStrip"));
    area_->setPlotShown(&other, true);
    area_->setRuns({&shown});
    area_->setFocusedRun(&hidden);
    const QImage image = picture();
    QVERIFY(strip().header().items().front().swatch == HeaderItem::Swatch::run);
    QCOMPARE(strip().header().items().front().seriesIndex, 0);
    QVERIFY(!other.header().badge().isEmpty());  // of the one that is shown
    QCOMPARE(count(image, seriesColor(lightColors(), 0), drawing(loss())), 0);
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
    QTest::keyClick(&canvas, Qt::Key_W);  // a second time: everything
    QVERIFY(xRange().size() >= 40.0);
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
    QCOMPARE(strip().header().badge(), QStringLiteral("10 gradient reductions, %1 (every micro-step: %2)")
                                           .arg(bytesText(2 * 4096 * 10), bytesText(2 * 4096 * 40)));
    // The tooltip says which bytes these are, and how the planner's differ.
    QVERIFY(strip().header().toolTip().contains(QStringLiteral("what all ranks together hand in")));
    QVERIFY(strip().header().toolTip().contains(QStringLiteral("The planner says what is sent")));
  }

  void what_ranks_agree_on_is_counted_and_drawn_apart() {
    RunSeries& run = add({.updates = 6, .batchesPerEpoch = 1000}, 6, 0);
    show({&run});
    area_->setClock(Clock::seconds);
    const QColor reduction = lightColors().collective, aside = lightColors().muted;
    const QImage before = picture();
    const double end = run.timeline().end();
    for (const std::int64_t rank : {0, 1})
      run.append({{rank, -1, MadeRun::ns(end),
                   Sync{{6},
                        {24},
                        {"data"},
                        {"all_gather"},
                        {CollectivePurpose::check},
                        {1 << 20},
                        {MadeRun::ns(end - 0.003)},
                        {MadeRun::ns(end)}}}});
    const QImage after = picture();
    QCOMPARE(strip().header().badge(),
             QStringLiteral("6 gradient reductions, %1 (every micro-step: %2); 2 other collectives, %3")
                 .arg(bytesText(2 * 4096 * 6), bytesText(2 * 4096 * 24), bytesText(2 << 20)));
    QVERIFY(strip().summary().contains(QStringLiteral("2 ranks, 6 gradient reductions")));
    QCOMPARE(count(after, reduction, drawing(strip()), 0.93), count(before, reduction, drawing(strip()), 0.93));
    QVERIFY(count(after, aside, drawing(strip()), 0.93) > count(before, aside, drawing(strip()), 0.93));
  }

  void the_strip_reads_nothing_beyond_its_end() {
    show({&add({.updates = 6, .batchesPerEpoch = 1000}, 6, 0)});
    const auto read = [this](double x) {
      area_->goTo(x);
      return strip().header().items().front().text;
    };
    QVERIFY2(read(6.0).startsWith(QStringLiteral("rank 0, micro-step 24: ")), qPrintable(read(6.0)));
    QCOMPARE(read(6.2), QStringLiteral("rank 0: nothing measured here"));
    QVERIFY(area_->readOut().filter(QStringLiteral("micro-step")).isEmpty());
  }

  void the_strips_badge_has_room_beside_the_docks() {
    RunSeries& run = add({.steps = 8, .updates = 12, .batchesPerEpoch = 1000}, 12, 0);
    RunSeries& other = add({.updates = 12, .batchesPerEpoch = 1000}, 12, 1);
    show({&run, &other});
    const QString badge = strip().header().badge();
    QVERIFY2(badge.contains(QStringLiteral("every micro-step: ")), qPrintable(badge));
    const QString needed = badge.left(badge.indexOf(QLatin1Char(')')) + 1);
    const QFontMetrics metrics(textFont(TextSize::small));
    // Widths that remain for the plots in windows of 1366 and 1024 pixels.
    for (const int width : {1366 - 368 - 280, 1024 - 368 - 280})
      QVERIFY2(metrics.horizontalAdvance(needed) + 2 * space::betweenGroups <= width, qPrintable(needed));
    // It is painted, too: below the title, in the muted colour of text.
    strip().resize(1024 - 368 - 280, strip().height());
    const QImage header = strip().header().grab().toImage();
    const int line = header.height() - metrics.height();
    int painted = 0;
    for (int x = 0; x < header.width(); ++x)
      for (int y = line; y < header.height(); ++y) painted += qGray(header.pixel(x, y)) < 160 ? 1 : 0;
    QVERIFY2(painted > 200, qPrintable(QString::number(painted)));
  }

  /// Of a header that is painted at a width: whether each of the colours is there.
  void a_narrow_header_keeps_its_legend_and_whole_figures() {
    const ThemeColors& colors = lightColors();
    PlotHeader header;
    header.setBadgeBelow(true);
    header.setTitle(QStringLiteral("Sync"), QStringLiteral("one lane a rank"));
    using Swatch = HeaderItem::Swatch;
    header.setItems({{Swatch::block, 0, colors.forward, QStringLiteral("forward"), {}, QStringLiteral("fwd")},
                     {Swatch::block, 0, colors.backward, QStringLiteral("backward"), {}, QStringLiteral("bwd")},
                     {Swatch::bar, 0, colors.collective, QStringLiteral("collective"), {}, QStringLiteral("coll.")}});
    header.setBadge(QStringLiteral("240 gradient reductions, 432 MiB; 1 132 collectives, 434 MiB in total"));
    const auto painted = [&](int width) {
      QImage image(width, header.sizeHint().height(), QImage::Format_RGB32);
      QPainter painter(&image);
      header.paintInto(painter, image.rect(), colors);
      return image;
    };
    const auto names = QFontMetrics(tabularFont(TextSize::small));
    const int full = names.horizontalAdvance(QStringLiteral("forward backward collective"));
    for (const int width : {full + 300, full + 90})
      QVERIFY2(count(painted(width), colors.collective, {0, 0, width, 40}, 0.9) > 20,
               qPrintable(QString::number(width)));
    // Nothing but the second part distinguishes the badges, and it has no room.
    const int narrow = full + 90;
    const QImage with = painted(narrow);
    header.setBadge(QStringLiteral("240 gradient reductions, 432 MiB"));
    QCOMPARE(with, painted(narrow));
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
    QCOMPARE(lanes.headers.mid(5, 3), (QStringList{QStringLiteral("Transfer"), QStringLiteral("Agreeing or checking"),
                                                   QStringLiteral("Waiting")}));
    QCOMPARE(lanes.cell(1, 5), spanText(MadeRun{}.collective));
    QCOMPARE(lanes.cell(1, 6), spanText(0.0));
    QCOMPARE(lanes.cell(1, 8), bytesText(4096));
    window->close();
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPlotStack)

}  // namespace test_plot_stack
#include "test_plot_stack.moc"
