// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning_rate_plot.h"

#include <algorithm>
#include <limits>

#include "canvas/curve_layer.h"

namespace accrue::ui {

namespace {

constexpr double plannedOpacity = 0.7;

}  // namespace

LearningRatePlot::LearningRatePlot(PlotHub& hub, QWidget* parent)
    : MetricPlot(hub, 1, QStringLiteral("learningRatePlot"), Metric::learningRate,
                 {tr("Learning rate"), tr("dots: planned, line: used"), tr("learning rate")}, parent) {}

void LearningRatePlot::addBeneath(const RunSeries& run, double pixels, MinMax& extent) {
  if (failedUnmeasured(run)) return;
  ReducedLine line;
  const Span x = hub().x();
  const double apart = x.size() / std::max(pixels, 1.0);
  const auto plan = run.plannedLearningRate(hub().clock());
  double lastX = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto [at, rate] = plan[i];
    const bool edge = i == 0 || i + 1 == plan.size();
    if (!edge && at - lastX < apart) continue;
    lastX = at;
    line.x.push_back(at);
    line.y.push_back(rate);
    if (at >= x.low && at <= x.high) extent.add(i, rate);
  }
  // Dots, because dashes mark the ninth and later runs.
  const ThemeColors& colors = canvas().colors();
  QPen dotted(mixed(seriesColor(colors, run.colorIndex()), colors.surface, plannedOpacity), 1.0);
  dotted.setDashPattern({1.0, 3.0});
  curves().add(LineItem{std::move(line), dotted});
}

}  // namespace accrue::ui
