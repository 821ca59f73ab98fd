// SPDX-License-Identifier: GPL-3.0-or-later
// Plots as figures and pictures: what they say, and that every resolution shows the same.
#include <QtTest>

#include "models/smoothing.h"
#include "plots/plot_export.h"
#include "plots/plot_header.h"
#include "plots_fixture.h"
#include "support/test_program.h"

namespace test_plot_pictures {

using namespace accrue;
using namespace accrue::ui;

class TestPlotPictures : public QObject, PlotsFixture {
  Q_OBJECT

 private Q_SLOTS:
  void init() { begin(); }

  void cleanup() { end(); }

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
