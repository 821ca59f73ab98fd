// SPDX-License-Identifier: GPL-3.0-or-later
// Painting of plots, by meaning: a thing that must be visible has its colour at its place.
#include <QAccessible>
#include <QBuffer>
#include <QClipboard>
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <limits>

#include "canvas/curve_layer.h"
#include "canvas/series_swatch.h"
#include "kit/command_table.h"
#include "kit/number_text.h"
#include "plots_fixture.h"
#include "points/smoothing.h"
#include "series/group_curve.h"
#include "support/test_program.h"

namespace test_plots {

using namespace accrue;
using namespace accrue::ui;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

class TestPlots : public QObject, PlotsFixture {
  Q_OBJECT

  /// A run that has finished; its loss by micro-step, which is an update.
  RunSeries& seed(std::int64_t seed, std::int64_t updates, int color,
                  const std::function<double(std::int64_t, std::int64_t)>& lossOf,
                  const std::vector<Evaluation>& evaluations = {}) {
    const MadeRun made{.steps = 1, .ranks = 1, .updates = updates, .batchesPerEpoch = 100'000, .loss = lossOf};
    RunSeries& run = add(made, updates, color);
    RunPlan plan = made.plan();
    plan.spec.run.seed = seed;
    run.setPlan(plan);
    std::vector<RunEvent> last;
    for (const Evaluation& evaluation : evaluations) last.push_back({0, -1, MadeRun::ns(98.0), evaluation});
    last.push_back({supervisor_rank, 1, MadeRun::ns(99.0), RunFinished{.outcome = "finished"}});
    run.append(last);
    return run;
  }
  /// Returns the header's text for two seeds, the last of which has the focus.
  QString groupTextAt(double x) {
    area_->goTo(x);
    frame();
    const std::vector<HeaderItem>& items = loss().header().items();
    return items.size() > 2 ? items[2].text : QString();
  }

 private Q_SLOTS:
  void what_tells_a_run_from_others_is_shortened_last() {
    const QFontMetrics metrics(QApplication::font());
    const auto shown = [&metrics](const QString& name, int less) {
      return elidedRunName(name, metrics, metrics.horizontalAdvance(name) - less);
    };
    const QString bug = QStringLiteral("Unequal counts (bug: mean_of_means)");
    QCOMPARE(shown(bug, 0), bug);
    const int some = metrics.horizontalAdvance(QStringLiteral("al counts"));
    QVERIFY2(shown(bug, some).endsWith(QStringLiteral("\u2026 (bug: mean_of_means)")), qPrintable(shown(bug, some)));
    const QString setting = QStringLiteral("Unequal counts, N = 16");
    QVERIFY2(shown(setting, some).endsWith(QStringLiteral("\u2026, N = 16")), qPrintable(shown(setting, some)));
    // With no room for both, as any text.
    const int most = metrics.horizontalAdvance(QStringLiteral("Unequal counts (bug: me"));
    QVERIFY(shown(bug, most).contains(QChar(0x2026)));
  }

  void init() { begin(); }

  void cleanup() { end(); }

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

  void seeds_are_their_mean_in_a_band_from_the_least_to_the_most() {
    QList<RunSeries*> seeds;
    for (const std::int64_t seed : {1, 2, 3}) {
      MadeRun made{.ranks = 1, .updates = 60};
      made.loss = [seed](std::int64_t, std::int64_t) { return static_cast<double>(seed); };
      RunSeries& run = add(made, 60, static_cast<int>(seed) - 1);
      RunPlan plan = made.plan();
      plan.spec.run.seed = seed;
      run.setPlan(plan);
      run.append({{supervisor_rank, 1, MadeRun::ns(99.0), RunFinished{.outcome = "finished"}}});
      seeds.append(&run);
    }
    show(seeds);  // the third has the focus, and is drawn as ever
    const auto at = [this](const QImage& image, double loss_value) {
      const QRect area = drawing(loss());
      const double y = loss().canvas().y()->coordToPixel(loss_value) - loss().canvas().axisRect()->rect().top();
      return image.pixel(area.center().x(), area.top() + static_cast<int>(std::lround(y)));
    };
    const QColor ink = seriesColor(lightColors(), 0);
    const QColor pale = mixed(ink, lightColors().surface, 0.22);
    QImage image = picture();
    for (const double between : {1.4, 2.6}) QVERIFY(near(at(image, between), pale, 6));
    QVERIFY(near(at(image, 2.0), ink));
    QVERIFY(!near(at(image, 1.0), ink, 60));  // a seed is thin and pale
    QVERIFY(near(at(image, 3.0), seriesColor(lightColors(), 2)));
    QCOMPARE(loss().header().items().size(), std::size_t{2});
    QCOMPARE(loss().header().items().back().text, QStringLiteral("band: min to max"));
    QCOMPARE(loss().header().items().front().text, QStringLiteral("N=4: mean of 3 seeds"));
    QVERIFY2(loss().summary().contains(QStringLiteral("mean of 3 seeds 2.000 (1.000 to 3.000) at update 60")),
             qPrintable(loss().summary()));
    area_->goTo(30.0);
    QCOMPARE(loss().header().items().back().text, QStringLiteral("Δ \u22121.00"));
    QCOMPARE(loss().header().items()[2].text, QStringLiteral("2.000 (1.000 to 3.000)"));

    const PlotTable table = loss().table();
    const auto column = static_cast<int>(table.headers.indexOf(QStringLiteral("N=4, min")));
    QVERIFY(column > 0);
    QCOMPARE(table.cell(9, column), QStringLiteral("1.000"));
    QCOMPARE(table.cell(9, column - 1), QStringLiteral("2.000"));
    QCOMPARE(table.cell(9, column + 1), QStringLiteral("3.000"));
    const Figure figure = area_->figure({});
    QCOMPARE(figure.legend.back().text, QStringLiteral("N=4: mean of 3 seeds"));
    QVERIFY2(figure.caption.contains(QStringLiteral("thick line, mean over seeds")), qPrintable(figure.caption));

    area_->setGroupSeeds(false);
    image = picture();
    QVERIFY(near(at(image, 1.4), lightColors().surface, 6));
    QVERIFY(near(at(image, 1.0), ink));
    QVERIFY(!loss().summary().contains(QStringLiteral("seeds")));
  }

  /// A run that diverges does not make the next one a flat line; what leaves the axis is said and can be seen.
  void a_diverged_run_leaves_the_axis_to_the_others() {
    MadeRun wild;
    wild.loss = [](std::int64_t m, std::int64_t) {
      return m < 80 ? 5.0 - 0.01 * double(m) : m < 140 ? 5.0 * std::pow(1.2, double(m - 80)) : quiet_nan;
    };
    RunSeries& diverged = add(wild, 40, 1);
    show({&diverged});
    QVERIFY(loss().canvas().y()->range().upper > 1e5);  // alone it is shown whole
    QVERIFY(!loss().header().badge().contains(QStringLiteral("out of the axis")));
    show({&diverged, &add({}, 40, 0)});
    const QImage image = picture();
    const QCPRange y = loss().canvas().y()->range();
    QVERIFY2(y.upper < 8.0 && y.upper > 5.0 && y.lower < 3.0, qPrintable(QString::number(y.upper)));
    QVERIFY(loss().header().badge().contains(QStringLiteral("1 run rises out of the axis")));
    QVERIFY(loss().header().toolTip().contains(QStringLiteral("1 run rises out of the axis")));
    QVERIFY(loss().summary().contains(QStringLiteral("1 run rises out of the axis")));
    const auto* curves = loss().canvas().findChild<CurveLayer*>();
    QCOMPARE(curves->leaving().size(), std::size_t{1});
    const double at = curves->leaving().front().x;
    QVERIFY2(at > 19.0 && at < 26.0, qPrintable(QString::number(at)));
    const QRect area = drawing(loss());
    const int sign = area.left() + qRound(loss().canvas().x()->coordToPixel(at)) - loss().canvas().axisRect()->left();
    QVERIFY(count(image, seriesColor(lightColors(), 1), QRect(sign - 3, area.top() + 4, 7, 6), 0.9) > 20);
    // Zooming out by hand, or the logarithmic axis, shows all of it.
    area_->setLogY(true);
    picture();
    QVERIFY(loss().canvas().y()->range().upper > 1e5);
    QVERIFY(!loss().header().badge().contains(QStringLiteral("out of the axis")));
    area_->setLogY(false);
    // Runs that only differ in height share the axis.
    MadeRun high;
    high.loss = [](std::int64_t, std::int64_t) { return 100.0; };
    show({&add(high, 40, 2), &add({}, 40, 3)});
    picture();
    QVERIFY(loss().canvas().y()->range().upper > 100.0);
  }

  /// Each seed is smoothed by itself, and the band reaches from the least to the most of what is smoothed.
  void smoothed_seeds_are_those_that_are_shown() {
    const auto constant = [](std::int64_t seed) { return [seed](std::int64_t, std::int64_t) { return double(seed); }; };
    const auto raised = [](std::int64_t seed) {
      return [seed](std::int64_t m, std::int64_t) { return double(seed) + (m > 50 ? 1.0 : 0.0); };
    };
    const auto opposed = [](std::int64_t seed) {
      return [seed](std::int64_t m, std::int64_t) { return (m + seed) % 2 == 0 ? 1.0 : 3.0; };
    };
    area_->setSmoothing(0.9);
    show({&seed(1, 10, 0, constant(1)), &seed(2, 10, 1, constant(2))});
    QCOMPARE(groupTextAt(9.0), QStringLiteral("1.500 (1.000 to 2.000)"));
    // 40 updates after the rise: (1 - 0.9^40) / (1 - 0.9^90) = 0.98529 of it.
    show({&seed(1, 100, 2, raised(1)), &seed(2, 100, 3, raised(2))});
    QCOMPARE(groupTextAt(90.0), QStringLiteral("2.485 (1.985 to 2.985) smoothed, 2.500 (2.000 to 3.000) raw"));
    // Values that alternate by 1 alternate by 0.1 / 1.9 after smoothing.
    show({&seed(1, 200, 4, opposed(1)), &seed(2, 200, 5, opposed(2))});
    QCOMPARE(groupTextAt(200.0), QStringLiteral("2.000 (1.947 to 2.053) smoothed, 2.000 (1.000 to 3.000) raw"));
    const QString caption = area_->figure({}).caption;
    QVERIFY2(caption.contains(QStringLiteral("Smoothed, each run by itself: ")), qPrintable(caption));
  }

  void what_a_seeds_curve_cannot_show_is_marked_and_counted() {
    RunSeries& one = seed(1, 60, 0, [](std::int64_t m, std::int64_t) { return m == 30 ? quiet_nan : 1.0; },
                          {Evaluation{.update = 30, .loss = 7.0}});
    show({&one, &seed(2, 60, 1, [](std::int64_t, std::int64_t) { return 2.0; })});
    QVERIFY(loss().summary().contains(QStringLiteral("mean of 2 seeds")));
    // The micro-step and the update.
    QVERIFY2(loss().header().badge().contains(QStringLiteral("2 not finite")), qPrintable(loss().header().badge()));
    QVERIFY(loss().canvas().y()->range().upper > 7.0);
    QVERIFY(count(picture(), lightColors().failed, drawing(loss())) > 4);
  }

  void curves_of_seeds_stay_while_other_runs_come_and_go() {
    const auto constant = [](std::int64_t, std::int64_t) { return 1.0; };
    RunSeries& one = seed(1, 20, 0, constant);
    RunSeries& two = seed(2, 20, 1, constant);
    PlotHub hub;
    hub.setRuns({&one, &two});
    QCOMPARE(hub.groups().size(), std::size_t{1});
    const std::shared_ptr<const GroupCurve> curve = hub.groups().front();
    hub.setRuns({&one, &two, &add({}, 5, 2)});
    QCOMPARE(hub.groups().size(), std::size_t{1});
    QVERIFY(hub.groups().front() == curve);
    // A name of the user's own is on it at once.
    const std::uint64_t before = hub.revision();
    one.setNotes({.name = QStringLiteral("Mine"), .text = {}, .tags = {}});
    QVERIFY(hub.revision() > before);
    QCOMPARE(hub.groups().front()->name(), QStringLiteral("Mine: mean of 2 seeds"));
    hub.setRuns({&two});
    QVERIFY(hub.groups().empty());
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

  void every_plot_marks_what_is_not_finite() {
    const MadeRun made{.steps = 1, .ranks = 1, .updates = 50};
    std::vector<RunEvent> events = made.events(50);
    for (RunEvent& event : events)
      if (auto* update = std::get_if<Update>(&event.body); update && update->update % 10 == 0)
        update->grad_norm = quiet_nan;
    RunSeries& run = add(made, 0, 0);
    run.append(events);
    auto& norm = *area_->findChild<PlotView*>(QStringLiteral("gradNormPlot"));
    area_->setPlotShown(&norm, true);
    show({&run});
    const QImage image = picture();
    QVERIFY2(norm.header().badge().contains(QStringLiteral("5 not finite")), qPrintable(norm.header().badge()));
    QVERIFY(norm.summary().contains(QStringLiteral("5 values not finite")));
    QVERIFY(count(image, lightColors().failed, drawing(norm)) > 20);
  }

  void log_y_says_what_it_cannot_show() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 50};
    made.loss = [](std::int64_t m, std::int64_t) { return m <= 5 ? -1.0 : static_cast<double>(m); };
    show({&add(made, 50, 0)});
    QVERIFY(!loss().header().badge().contains(QStringLiteral("log y")));
    area_->setLogY(true);
    frame();
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
    QBuffer json;
    QVERIFY(json.open(QIODevice::WriteOnly) && area_->snapshot().writeJson(json));
    QVERIFY(json.data().contains(smoothingFormula(0.98).toUtf8()));
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
    frame();
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
    frame();
    QCoreApplication::sendPostedEvents();
    QCOMPARE(drawn.count(), 0);
    area_->show();
    QVERIFY(QTest::qWaitForWindowExposed(area_.get()));
    frame();
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

  void every_key_that_the_table_gives_a_plot_does_something() {
    show({&add({}, 40, 0)});
    for (const MenuRow& row : menuTable()) {
      if (row.place != KeyPlace::inPlots || row.id == Command::togglePause) continue;  // which the window takes
      for (const QKeySequence& keys : keysOf(row)) {
        area_->goTo(20.2);
        QKeyEvent press(QEvent::KeyPress, keys[0].key(), keys[0].keyboardModifiers());
        QCoreApplication::sendEvent(&*area_, &press);
        QVERIFY2(press.isAccepted(), qPrintable(keys.toString()));
      }
    }
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

  void a_single_update_is_a_mark() {
    show({&add({.ranks = 1, .updates = 1}, 1, 2)});
    const QImage image = picture();
    for (PlotView* view : {static_cast<PlotView*>(&loss()), static_cast<PlotView*>(&rate())}) {
      const QRect area = drawing(*view);
      const QRect end(area.right() - 5, area.top(), 11, area.height());
      QVERIFY2(count(image, seriesColor(lightColors(), 2), end, 0.8) > 15, qPrintable(view->objectName()));
    }
    // Both labels of the axis, 0 and 1, with its title between them.
    const QVector<QString> labels = strip().canvas().x()->tickVectorLabels();
    QCOMPARE(labels.first(), QStringLiteral("0"));
    QCOMPARE(labels.last(), QStringLiteral("1"));
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
    frame();
    const int dashed = inked();
    QVERIFY2(dashed > solid / 4 && dashed < solid * 9 / 10,
             qPrintable(QStringLiteral("%1 of %2").arg(dashed).arg(solid)));
  }

  void what_was_not_drawn_is_told() {
    RunSeries& run = add({}, 10, 0);
    show({&run});
    QVERIFY(!loss().header().badge().contains(QStringLiteral("not drawn")));
    run.setTracesNotDrawn(12);
    frame();
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
};

ACCRUE_WINDOW_TEST_MAIN(TestPlots)

}  // namespace test_plots
#include "test_plots.moc"
