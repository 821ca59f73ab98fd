// SPDX-License-Identifier: GPL-3.0-or-later
#include "metric_plot.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "canvas/axis_tickers.h"
#include "canvas/curve_layer.h"
#include "canvas/mark_track.h"
#include "kit/number_text.h"

namespace accrue::ui {

namespace {

constexpr int digits = 3;
constexpr double paleness = 0.55;
constexpr double skippedSize = 9.0;
constexpr double evaluatedSize = 5.0;

/// The first part has the run's dash; every further one has one dot more between its dashes.
QPen penOf(QPen ofRun, int part) {
  if (part == 0) return ofRun;
  QList<qreal> dashes{8.0, 3.0};
  for (int dot = 1; dot < part; ++dot) dashes << 1.0 << 3.0;
  ofRun.setDashPattern(dashes);
  return ofRun;
}

/// Visible points; none if they would touch each other.
MarkerItem pointsOf(const SeriesView& view, Span x, double pixels, int seriesIndex, const QColor& ink) {
  MarkerItem points{{}, {}, seriesIndex, evaluatedSize, ink};
  const std::size_t from = view.clock->lowerBound(x.low);
  const std::size_t to = std::min(view.clock->upperBound(x.high), view.size());
  if (to <= from || static_cast<double>(to - from) * 2.0 * evaluatedSize > pixels) return points;
  for (std::size_t i = from; i < to; ++i) {
    if (!std::isfinite((*view.values)[i])) continue;
    points.x.push_back((*view.clock)[i]);
    points.y.push_back((*view.values)[i]);
  }
  return points;
}

}  // namespace

MetricPlot::MetricPlot(PlotHub& hub, int number, const QString& objectName, Metric metric, Words words, QWidget* parent)
    : PlotView(hub, number, objectName, parent),
      curves_(new CurveLayer(canvas().x(), canvas().y(), QStringLiteral("curves"))),
      marks_(new MarkTrack(canvas().x(), QStringLiteral("marks"))),
      metric_(metric),
      words_(std::move(words)) {
  //: Name of a plot for assistive technology: "Learning rate plot"
  canvas().setAccessibleName(tr("%1 plot").arg(words_.title));
  const QSharedPointer<QCPAxisTicker> ticker(new ValueTicker);
  ticker->setTickCount(3);
  canvas().y()->setTicker(ticker);
  header().setTitle(words_.title, words_.unit);
}

std::vector<MetricPlot::Curve> MetricPlot::curvesOf(const RunSeries& run) const {
  return {{&run.series(metric_)}};
}

void MetricPlot::rebuild(double pixels) {
  curves_->clear();
  marks_->clear();
  notFinite_ = 0;
  const Span x = hub().x();
  const double bin = binWidth(x.size(), pixels);
  const ThemeColors& colors = canvas().colors();
  MinMax extent;
  std::size_t stored = 0;
  std::size_t unlogged = 0;
  bool reduced = false;
  const QList<RunSeries*> runs = hub().runs();
  for (const RunSeries* run : runs) {
    addBeneath(*run, pixels, extent);
    unlogged += isUnlogged(*run);
    for (const Curve& curve : curvesOf(*run)) {
      const SeriesView view = viewOf(*curve.store, hub().clock());
      const MinMax used = valueRange(view, x.low, x.high);
      if (!used.empty()) extent.add(used);
      ReducedLine line = reduceLine(view, x.low, x.high, bin);
      stored += line.points;
      reduced = reduced || line.reduced;
      QPen pen = penOf(seriesPen(colors, run->colorIndex()), curve.part);
      if (curve.evaluated) pen.setColor(mixed(pen.color(), colors.surface, paleness));
      const QColor ink = pen.color();
      curves_->add(LineItem{std::move(line), std::move(pen)});
      if (view.size() == 1 && !curve.evaluated)  // no line
        curves_->add(MarkerItem{{(*view.clock)[0]}, {(*view.values)[0]}, run->colorIndex(), 7.0, ink});
      if (curve.evaluated) curves_->add(pointsOf(view, x, pixels, run->colorIndex(), ink));
      marks_->add(*curve.store, hub().clock(), colors.failed);
      notFinite_ += curve.store->marks().size();
    }
    addAbove(*run);
  }
  QStringList parts;
  if (notFinite_ > 0) parts << tr("%1 not finite").arg(countText(static_cast<double>(notFinite_)));
  if (unlogged > 0)
    //: Of a plot's runs: how many have no such value in their record
    parts << (runs.size() == 1 ? tr("not logged") : tr("not logged by %1 of %2 runs").arg(unlogged).arg(runs.size()));
  header().setDrawn(reduced ? stored : 0, pixels);
  header().setBadge(parts.join(QStringLiteral(" · ")));
  fitY(extent);
}

bool MetricPlot::isUnlogged(const RunSeries& run) const {
  const bool ofEveryUpdate = metric_ == Metric::learningRate || metric_ == Metric::gradNorm;
  return ofEveryUpdate && run.series(metric_).empty() && !run.series(Metric::updateLoss).empty();
}

void MetricPlot::fitY(const MinMax& extent) {
  const double top = extent.empty() || extent.high <= 0.0 ? 1.0 : extent.high;
  const Span fitted = fittedY(0.0, top, false);
  setYRange(hub().y(number()) ? fitted : Span{0.0, fitted.high * 1.04});
}

QString MetricPlot::cellText(const Curve& curve, double x) const {
  const std::size_t index = curve.store->reading(hub().clock(), x);
  if (index >= curve.store->size()) return {};
  const QString value = valueText(curve.store->value(index), digits);
  //: A curve of several of a run, and its value: "rank 0 412"
  return curve.name.isEmpty() ? value : tr("%1 %2").arg(curve.name, value);
}

PlotView::Readout MetricPlot::readout(double x) const {
  Readout result;
  const QList<RunSeries*> runs = hub().runs();
  for (const RunSeries* run : runs)
    for (const Curve& curve : curvesOf(*run)) {
      const std::size_t index = curve.store->reading(hub().clock(), x);
      if (index >= curve.store->size()) continue;
      result.items.push_back({HeaderItem::Swatch::run, run->colorIndex(), {}, cellText(curve, x)});
      const double value = curve.store->value(index);
      if (std::isfinite(value))
        result.dots.push_back({curve.store->clock(hub().clock())[index], value, run->colorIndex()});
    }
  return result;
}

QString MetricPlot::valueAt(const RunSeries& run, double x) const {
  QStringList values;
  for (const Curve& curve : curvesOf(run))
    if (const QString text = cellText(curve, x); !text.isEmpty()) values << text;
  return values.isEmpty() ? QString() : QStringLiteral("%1 %2").arg(words_.quantity, values.join(QStringLiteral(", ")));
}

QString MetricPlot::summary() const {
  const QList<RunSeries*> runs = hub().runs();
  if (runs.isEmpty()) return tr("%1: no run").arg(words_.quantity);
  const QString text =
      runs.size() == 1 ? tr("%1: 1 run").arg(words_.quantity) : tr("%1: %2 runs").arg(words_.quantity).arg(runs.size());
  QStringList last;
  for (const Curve& curve : curvesOf(*runs.last())) {
    if (curve.store->empty()) continue;
    const std::size_t newest = curve.store->size() - 1;
    const QString value = valueText(curve.store->value(newest), digits);
    last << (curve.name.isEmpty() ? value : tr("%1 %2").arg(curve.name, value));
  }
  if (last.isEmpty())
    return (isUnlogged(*runs.last()) ? tr("%1, not logged") : tr("%1, nothing measured yet")).arg(text);
  const QString whole = tr("%1, last %2 at update %3")
                            .arg(text, last.join(QStringLiteral(", ")), groupedNumber(runs.last()->last().update));
  return notFinite_ > 0 ? tr("%1, %2 values not finite").arg(whole).arg(notFinite_) : whole;
}

PlotTable MetricPlot::table() const {
  std::vector<TableSeries> columns;
  const QList<RunSeries*> runs = hub().runs();
  for (RunSeries* run : runs)
    for (const Curve& curve : curvesOf(*run)) {
      const QString name = run->name();
      columns.push_back({run, curve.store, curve.name.isEmpty() ? name : tr("%1, %2").arg(name, curve.name)});
    }
  return tableOf(hub().clock(), std::move(columns));
}

MemoryPlot::MemoryPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : MetricPlot(hub, number, objectName, Metric::updateLoss,
                 {tr("Memory"), tr("MiB of each rank: of its device, or resident on the CPU"), tr("memory in MiB")},
                 parent) {}

std::vector<MetricPlot::Curve> MemoryPlot::curvesOf(const RunSeries& run) const {
  std::vector<Curve> curves;
  for (const auto& [rank, memory] : run.memory()) curves.push_back({&memory->mebibytes, tr("rank %1").arg(rank)});
  return curves;
}

LossPartsPlot::LossPartsPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : MetricPlot(hub, number, objectName, Metric::updateLoss,
                 {tr("Loss parts"), tr("what the loss is the sum of"), tr("parts of the loss")}, parent) {}

std::vector<MetricPlot::Curve> MetricPlot::namedCurves(const PartSeries& ofUpdates, const PartSeries& ofEvaluations) {
  std::vector<Curve> curves;
  int next = 0;
  std::map<QString, int> places;
  const auto place = [&](const QString& name) {
    const auto [at, isNew] = places.try_emplace(name, next);
    next += isNew;
    return at->second;
  };
  for (const auto& [name, part] : ofUpdates)
    if (!part->values.empty()) curves.push_back({&part->values, name, place(name)});
  for (const auto& [name, part] : ofEvaluations)
    //: A number of evaluations under its name: "lm loss, validation"
    if (!part->values.empty()) curves.push_back({&part->values, tr("%1, validation").arg(name), place(name), true});
  return curves;
}

std::vector<MetricPlot::Curve> LossPartsPlot::curvesOf(const RunSeries& run) const {
  return namedCurves(run.lossParts(), run.evaluationParts());
}

ScalarsPlot::ScalarsPlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : MetricPlot(hub, number, objectName, Metric::updateLoss,
                 {tr("Scalars"), tr("what the program, or a train step of your own, measures besides"),
                  tr("scalars of the program")},
                 parent) {}

std::vector<MetricPlot::Curve> ScalarsPlot::curvesOf(const RunSeries& run) const {
  return namedCurves(run.scalars(), run.evaluationScalars());
}

LossScalePlot::LossScalePlot(PlotHub& hub, int number, const QString& objectName, QWidget* parent)
    : MetricPlot(hub, number, objectName, Metric::lossScale,
                 {tr("Loss scale"), tr("after each update; marks: updates left out"), tr("loss scale")}, parent) {
  canvas().y()->setScaleType(QCPAxis::stLogarithmic);
  canvas().y()->setTicker(QSharedPointer<QCPAxisTicker>(new BinaryTicker));
}

void LossScalePlot::addAbove(const RunSeries& run) {
  const SeriesStore& skipped = run.skippedUpdates();
  const ClockColumn& at = skipped.clock(hub().clock());
  MarkerItem marks{{}, {}, run.colorIndex(), skippedSize, canvas().colors().failed};
  for (std::size_t i = at.lowerBound(hub().x().low); i < at.upperBound(hub().x().high); ++i) {
    if (!(skipped.value(i) > 0.0)) continue;
    marks.x.push_back(at[i]);
    marks.y.push_back(skipped.value(i));
  }
  if (!marks.x.empty()) curves().add(std::move(marks));
}

void LossScalePlot::fitY(const MinMax& extent) {
  const bool usable = !extent.empty() && extent.low > 0.0;
  // Half a power of two more, so that a constant scale is in the middle.
  const double air = std::sqrt(2.0);
  setYRange(usable ? fittedY(extent.low / air, extent.high * air, true) : fittedY(1.0, 65536.0, true));
}

}  // namespace accrue::ui
