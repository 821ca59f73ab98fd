// SPDX-License-Identifier: GPL-3.0-or-later
// Plots as figures and pictures: what they say, and that every resolution shows the same.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "canvas/plot_header.h"
#include "kit/number_text.h"
#include "plots/plot_export.h"
#include "plots_fixture.h"
#include "points/smoothing.h"
#include "runs/run_table_model.h"
#include "support/test_program.h"

namespace test_plot_pictures {

using namespace accrue;
using namespace accrue::ui;

class TestPlotPictures : public QObject, PlotsFixture {
  Q_OBJECT

 private Q_SLOTS:
  void init() { begin(); }

  void cleanup() { end(); }

  void a_window_without_a_label_is_a_gap_without_a_mark() {
    MadeRun made{.steps = 1, .ranks = 1, .updates = 100};
    made.loss = [](std::int64_t m, std::int64_t) { return 1.0 + 0.001 * static_cast<double>(m); };
    for (std::int64_t update = 40; update < 60; ++update) made.unlabelled.insert(update);
    show({&add(made, 100, 0)});
    const QImage image = picture();
    const QRect area = drawing(loss());
    const auto painted = [&](double from, double to) {
      return count(image, seriesColor(lightColors(), 0),
                   QRect(area.left() + static_cast<int>(area.width() * from), area.top(),
                         static_cast<int>(area.width() * (to - from)), area.height()));
    };
    QCOMPARE(painted(0.43, 0.57), 0);
    QVERIFY(painted(0.1, 0.3) > 20);
    QCOMPARE(count(image, lightColors().failed, area), 0);
    QVERIFY(loss().canvas().y()->range().lower > 0.9);  // no zero stretches the axis
    QVERIFY(!loss().header().badge().contains(QStringLiteral("not finite")));
    area_->goTo(50.0);
    QVERIFY2(area_->readOut()[1].contains(QStringLiteral("–")), qPrintable(area_->readOut()[1]));
    const PlotTable table = loss().table();
    QCOMPARE(table.cell(49, 0), QStringLiteral("50"));
    QCOMPARE(table.cell(49, 1), QString());
    QCOMPARE(table.cell(38, 1), valueText(1.039));
  }

  /// An imported log has losses and nothing else: no rates, norms, samples or ranks.
  void what_a_log_does_not_say_is_not_drawn() {
    RunSeries log(QStringLiteral("log"), 0);
    for (std::int64_t update = 1; update <= 40; ++update)
      log.append({{supervisor_rank, update, 0, Update{.update = update, .micro_step = update, .loss = 1.0}}});
    log.append({{supervisor_rank, 41, 0, RunFinished{.outcome = "finished"}}});
    auto& norm = *area_->findChild<PlotView*>(QStringLiteral("gradNormPlot"));
    auto& pace = *area_->findChild<PlotView*>(QStringLiteral("throughputPlot"));
    for (PlotView* plot : {&norm, &pace}) area_->setPlotShown(plot, true);
    show({&log});
    const QImage image = picture();
    for (PlotView* plot : std::initializer_list<PlotView*>{&rate(), &norm, &pace}) {
      QCOMPARE(count(image, lightColors().failed, drawing(*plot)), 0);
      QVERIFY2(!plot->header().badge().contains(QStringLiteral("not finite")), qPrintable(plot->header().badge()));
    }
    QCOMPARE(rate().header().badge(), QStringLiteral("not logged"));
    QCOMPARE(norm.header().badge(), QStringLiteral("not logged"));
    QVERIFY2(rate().summary().endsWith(QStringLiteral("not logged")), qPrintable(rate().summary()));
    // Nothing divides lanes that are not there.
    QCOMPARE(count(image, lightColors().text, drawing(strip())), 0);
    QVERIFY(loss().header().badge().isEmpty() || !loss().header().badge().contains(QStringLiteral("not")));
    // Beside a run that says its rates, the plot says how many do not.
    show({&log, &add({.steps = 1, .ranks = 1, .updates = 40}, 40, 1)});
    QVERIFY2(rate().header().badge().contains(QStringLiteral("not logged by 1 of 2 runs")),
             qPrintable(rate().header().badge()));
    area_->setRuns({});
    area_->setFocusedRun(nullptr);
  }

  void a_figure_says_in_words_that_curves_were_reduced() {
    show({&add({.steps = 4, .ranks = 1, .updates = 5000, .batchesPerEpoch = 1000}, 5000, 0)});
    const QByteArray svg = svgOf(area_->figure({}));
    QVERIFY2(loss().header().badge().contains(QStringLiteral(" px")), qPrintable(loss().header().badge()));
    QVERIFY(svg.contains("drawn from 25"));
    QVERIFY(svg.contains("extremes kept"));
    QVERIFY(!svg.contains("pts"));
    QVERIFY(!svg.contains("min\u2013max"));
    show({&add({}, 40, 1)});
    const QByteArray whole = svgOf(area_->figure({}));
    QVERIFY(!whole.contains("pts") && !whole.contains("drawn from"));
  }

  void an_evaluation_is_a_hollow_mark_with_an_entry_of_its_own() {
    RunSeries& run = add({}, 40, 0);
    run.append({{0, -1, MadeRun::ns(98.0), Evaluation{.update = 20, .loss = 4.0}}});  // far above the curve
    show({&run});
    area_->setClock(Clock::update);
    area_->fit();
    const QImage image = picture();
    const PlotCanvas& canvas = loss().canvas();
    const QPoint centre = canvas.mapTo(
        area_.get(), QPoint(qRound(canvas.x()->coordToPixel(20.0)), qRound(canvas.y()->coordToPixel(4.0))));
    QVERIFY(near(image.pixel(centre), lightColors().surface, 2));
    QVERIFY(count(image, seriesColor(lightColors(), 0), QRect(centre - QPoint(6, 6), QSize(13, 13))) > 20);
    const HeaderItem& entry = loss().header().items().back();
    QVERIFY(entry.swatch == HeaderItem::Swatch::outline);
    QCOMPARE(entry.text, QStringLiteral("hollow: evaluation"));
    QVERIFY(svgOf(area_->figure({})).contains("hollow: evaluation"));
  }

  void pictures_are_written_whole_or_not_at_all() {
    show({&add({}, 40, 0)});
    const QTemporaryDir folder;
    for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
      const QString file = folder.filePath(QLatin1String(name));
      QCOMPARE(writePainted(paintFor(area_->figure({}), file), file), QString());
      QFile written(file);
      QVERIFY(written.open(QIODevice::ReadOnly));
      QVERIFY(written.size() > 2000);
    }
    QVERIFY(
        paintFor(area_->figure({}), folder.filePath(QStringLiteral("a.xyz"))).problem.contains(QStringLiteral(".png")));
    const QString nowhere = folder.filePath(QStringLiteral("missing/a.png"));
    QVERIFY(writePainted(paintFor(area_->figure({}), nowhere), nowhere).contains(nowhere));
    QVERIFY(!QFile::exists(nowhere));
    const QString small = folder.filePath(QStringLiteral("small.pdf"));
    const PaintedFigure painted = paintFor(area_->figure({40.0, 40.0, 12.0}), small);
    QVERIFY(writePainted(painted, small).contains(QStringLiteral("no room in 40 x 40 mm")));
    QVERIFY(!QFile::exists(small));
  }

  void a_figure_says_which_run_is_which_and_has_its_size() {
    RunSeries& few = add({}, 40, 0);
    RunSeries& many = add({.steps = 8}, 20, 1);
    few.setName(QStringLiteral("Demo"));
    many.setName(QStringLiteral("Demo"));
    RunTableModel table;
    table.addRun(&few);
    table.addRun(&many);
    QTRY_VERIFY(few.name() != many.name());
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

  /// One column of a journal: every rank, the last label of X and every entry of the legends are in the figure.
  void a_narrow_figure_holds_all_that_the_plots_show() {
    QList<RunSeries*> runs;
    for (int i = 0; i < 4; ++i) {
      runs << &add({.steps = 4, .ranks = 4}, 40, i);
      runs.back()->setName(QStringLiteral("Accumulation over four ranks, learning rate %1").arg(i));
    }
    show(runs);
    // Too low: it says how high the figure must be, and that is enough.
    const QString problem = figureProblem(area_->figure({85.0, 60.0, 8.0}));
    const QRegularExpressionMatch height =
        QRegularExpression(QStringLiteral("take a height of ([0-9]+) mm")).match(problem);
    QVERIFY2(height.hasMatch(), qPrintable(problem));
    for (const FigureSize& size :
         {FigureSize{85.0, height.captured(1).toDouble(), 8.0}, FigureSize{85.0, 60.0, 4.0}, FigureSize{}}) {
      const Figure figure = area_->figure(size);
      QCOMPARE(figureProblem(figure), QString());
      const QByteArray svg = svgOf(figure);
      for (const char* text : {">rank 0<", ">rank 1<", ">rank 2<", ">rank 3<", ">forward<", ">backward<", ">step<",
                               ">collective<", ">waiting<", ">40<", ">Updates<"})
        QVERIFY2(svg.contains(text), text);
      for (const char* text : {"rate 0", "rate 1", "rate 2", "rate 3"}) QVERIFY2(svg.contains(text), text);
      QVERIFY(!svg.contains(">+"));                                                        // "and so many more"
      if (size.widthMm < 100.0 && size.fontPoints == 8.0) QVERIFY(!svg.contains(">30<"));  // the title of X lies there
    }
    picture();
    QVERIFY(strip().canvas().axisRect()->right() == loss().canvas().axisRect()->right());
  }

  void a_figure_says_which_lanes_it_shows() {
    show({&add({.ranks = 32}, 40, 0)});
    const QByteArray svg = svgOf(area_->figure({}));
    QVERIFY(svg.contains(">rank 3<"));
    QVERIFY(!svg.contains(">rank 31<"));
    QVERIFY(svg.contains("lanes 1 to "));
    QVERIFY(svg.contains("of 32"));
  }

  void a_run_that_failed_before_it_measured_is_in_no_figure() {
    RunSeries& failed = add({.steps = 8}, 0, 1);
    failed.append({MadeRun::state("failed")});
    show({&add({}, 40, 0), &failed});
    const Figure figure = area_->figure({});
    QCOMPARE(figure.legend.size(), std::size_t{1});
    QCOMPARE(count(paintFigure(figure, 96.0), seriesColor(lightColors(), 1), QRect(0, 0, 4000, 4000)), 0);
  }

  void a_figure_is_for_paper_in_every_theme() {
    show({&add({}, 40, 0)});
    theme_->setMode(ThemeMode::dark);
    QTRY_VERIFY(isDark(area_->palette()));
    const QImage figure = paintFigure(area_->figure({}), 96.0);
    QVERIFY(near(figure.pixel(2, 2), lightColors().surface, 4));
    // Ink on paper is nearly as dark as the screen, but no ground: a whole row of it.
    for (int y = 0; y < figure.height(); y += 3) {
      int dark = 0;
      for (int x = 0; x < figure.width(); ++x) dark += near(figure.pixel(x, y), darkColors().surface, 4) ? 1 : 0;
      QVERIFY2(dark < figure.width() / 4, qPrintable(QStringLiteral("%1 pixels of row %2").arg(dark).arg(y)));
    }
    QVERIFY(near(picture().pixel(drawing(loss()).topRight() + QPoint(-3, 3)), darkColors().surface, 4));
  }

  void a_figure_tells_of_smoothing_only_where_it_is() {
    show({&add({}, 40, 0)});
    area_->setSmoothing(0.9);
    QVERIFY(area_->figure({}).caption.contains(smoothingFormula(0.9)));
    area_->setPlotShown(&loss(), false);
    QVERIFY(!area_->figure({}).caption.contains(smoothingFormula(0.9)));
  }

  /// Micro-steps that are more than the pixels: high in the first half of the run, low in the second.
  void a_band_lies_at_its_micro_steps_at_every_resolution() {
    MadeRun made{.steps = 4, .ranks = 1, .updates = 4000, .batchesPerEpoch = 100000};
    made.loss = [](std::int64_t m, std::int64_t) { return (m <= 8000 ? 3.0 : 1.0) + (m % 2 == 0 ? 0.4 : -0.4); };
    show({&add(made, 4000, 0)});
    const QColor pale = mixed(seriesColor(lightColors(), 0), lightColors().surface, 0.22);
    // In the rows near the band's upper edge.
    const auto end_of_first_half = [this, &pale](double ratio) {
      const QImage image = area_->renderImage(ratio);
      const auto isPale = [&](int x, int y) { return count(image, pale, {x, y, 1, 1}, 0.9) > 0; };
      int y = 0;
      while (y < image.height() && count(image, pale, {0, y, image.width(), 1}, 0.9) < 50) ++y;
      y += static_cast<int>(3 * ratio);
      int last = image.width() - 1;
      while (last > 0 && !isPale(last, y)) --last;
      return last / ratio;
    };
    const double plain = end_of_first_half(1.0);
    QVERIFY(plain > 100.0);
    for (const double ratio : {1.25, 2.0, 3.0})
      QVERIFY2(std::abs(end_of_first_half(ratio) - plain) < 3.0,
               qPrintable(QStringLiteral("%1 at %2, %3 at 1").arg(end_of_first_half(ratio)).arg(ratio).arg(plain)));
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
};

ACCRUE_WINDOW_TEST_MAIN(TestPlotPictures)

}  // namespace test_plot_pictures
#include "test_plot_pictures.moc"
