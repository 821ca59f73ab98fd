// SPDX-License-Identifier: GPL-3.0-or-later
// A plot area with runs of which the test knows everything, and what is painted in a picture of it.
#pragma once

#include <QApplication>
#include <QTest>
#include <array>
#include <cmath>
#include <memory>

#include "kit/theme.h"
#include "made_run.h"
#include "plots/learning_rate_plot.h"
#include "plots/loss_plot.h"
#include "plots/plot_area.h"
#include "plots/sync_strip.h"

namespace accrue::ui {

using accrue::test::MadeRun;

inline bool near(QRgb pixel, const QColor& color, int tolerance = 24) {
  return std::abs(qRed(pixel) - color.red()) <= tolerance && std::abs(qGreen(pixel) - color.green()) <= tolerance &&
         std::abs(qBlue(pixel) - color.blue()) <= tolerance;
}

/// Pixels that show a colour over the surface: of its hue, and covered by it to at least this part. Lines are smooth at
/// their edges, so a thin one seldom covers a pixel whole.
inline int count(const QImage& image, const QColor& color, const QRect& within, double leastCover = 0.4) {
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

class PlotsFixture {
 protected:
  void begin() {
    if (!theme_) theme_ = std::make_unique<Theme>(*qApp);
    theme_->setMode(ThemeMode::light);
    area_ = std::make_unique<PlotArea>();
    area_->resize(800, 600);
    area_->show();
    QVERIFY(QTest::qWaitForWindowExposed(area_.get()));
  }
  void end() {
    area_.reset();
    runs_.clear();
  }

  /// A frame with all its turns.
  void frame() {
    area_->tick();
    area_->drawAll();
  }

  void show(const QList<RunSeries*>& runs) {
    area_->setRuns(runs);
    area_->setFocusedRun(runs.isEmpty() ? nullptr : runs.last());
    frame();
  }

  /// Returns the current range of the x axis.
  QCPRange xRange() {
    frame();
    return loss().canvas().x()->range();
  }
  QImage picture() {
    frame();
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

}  // namespace accrue::ui
