// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/learning_rate_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/number_text.h"
#include "models/run_text.h"
#include "plots/axis_tickers.h"
#include "plots/curve_layer.h"

namespace accrue::ui {

namespace {

constexpr double plannedOpacity = 0.7;

}  // namespace

LearningRatePlot::LearningRatePlot(PlotHub& hub, QWidget* parent)
    : PlotView(hub, 1, QStringLiteral("learningRatePlot"), parent),
      curves_(new CurveLayer(canvas().x(), canvas().y(), QStringLiteral("curves"))) {
  canvas().setAccessibleName(tr("Learning rate plot"));
  const QSharedPointer<QCPAxisTicker> ticker(new ValueTicker);
  ticker->setTickCount(3);
  canvas().y()->setTicker(ticker);
  header().setTitle(tr("Learning rate"), tr("dots: planned, line: used"));
}

ReducedLine LearningRatePlot::planned(const RunSeries& run, double pixels) const {
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
  }
  return line;
}

void LearningRatePlot::rebuild(double pixels) {
  curves_->clear();
  const Span x = hub().x();
  const double bin = binWidth(x.size(), pixels);
  const ThemeColors& colors = canvas().colors();
  MinMax extent;
  std::size_t stored = 0;
  bool reduced = false;
  const QList<RunSeries*> runs = hub().runs();
  for (const RunSeries* run : runs) {
    ReducedLine plan = planned(*run, pixels);
    for (std::size_t i = 0; i < plan.x.size(); ++i)
      if (plan.x[i] >= x.low && plan.x[i] <= x.high) extent.add(i, plan.y[i]);
    // Dots: dashes are those of the ninth run and on.
    QPen dotted(mixed(seriesColor(colors, run->colorIndex()), colors.surface, plannedOpacity), 1.0);
    dotted.setDashPattern({1.0, 3.0});
    curves_->add(LineItem{std::move(plan), dotted});
    const SeriesView view = viewOf(run->series(Metric::learningRate), hub().clock());
    const MinMax used = valueRange(view, x.low, x.high);
    if (!used.empty()) extent.add(used);
    ReducedLine line = reduceLine(view, x.low, x.high, bin);
    stored += line.points;
    reduced = reduced || line.reduced;
    curves_->add(LineItem{std::move(line), seriesPen(colors, run->colorIndex())});
  }
  header().setBadge(
      !reduced
          ? QString()
          : tr("%1 pts → %2 px, min–max").arg(countText(static_cast<double>(stored)), countText(std::round(pixels))));
  // The axis starts at zero.
  const double top = extent.empty() || extent.high <= 0.0 ? 1.0 : extent.high;
  const Span fitted = fittedY(0.0, top, false);
  setYRange(hub().y(number()) ? fitted : Span{0.0, fitted.high * 1.04});
}

PlotView::Readout LearningRatePlot::readout(double x) const {
  Readout result;
  const QList<RunSeries*> runs = hub().runs();
  for (const RunSeries* run : runs) {
    const SeriesStore& store = run->series(Metric::learningRate);
    const std::size_t index = store.reading(hub().clock(), x);
    if (index >= store.size()) continue;
    const double value = store.value(index);
    result.items.push_back({HeaderItem::Swatch::run, run->colorIndex(), {}, valueText(value, 3)});
    if (std::isfinite(value)) result.dots.push_back({store.clock(hub().clock())[index], value, run->colorIndex()});
  }
  return result;
}

QString LearningRatePlot::valueAt(const RunSeries& run, double x) const {
  const SeriesStore& store = run.series(Metric::learningRate);
  const std::size_t index = store.reading(hub().clock(), x);
  return index < store.size() ? tr("learning rate %1").arg(valueText(store.value(index), 3)) : QString();
}

QString LearningRatePlot::summary() const {
  const QList<RunSeries*> runs = hub().runs();
  if (runs.isEmpty()) return tr("learning rate: no run");
  const RunSeries& last = *runs.last();
  const QString text = runs.size() == 1 ? tr("learning rate: 1 run") : tr("learning rate: %1 runs").arg(runs.size());
  if (last.last().update <= 0) return tr("%1, no update yet").arg(text);
  return tr("%1, last %2 at update %3")
      .arg(text, valueText(last.last().learningRate, 3), groupedNumber(last.last().update));
}

}  // namespace accrue::ui
