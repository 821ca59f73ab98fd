// SPDX-License-Identifier: GPL-3.0-or-later
#include "loss_plot.h"

#include <algorithm>
#include <cmath>

#include "canvas/axis_tickers.h"
#include "canvas/curve_layer.h"
#include "canvas/mark_track.h"
#include "kit/number_text.h"
#include "series/group_curve.h"

namespace accrue::ui {

namespace {

constexpr double bandOpacity = 0.22;
constexpr double traceOpacity = 0.38;
constexpr double rawUnderSmooth = 0.5;
constexpr double focusedWidth = 2.0;        // pixels; other runs and the trace of micro-steps have one
constexpr double markerSpacing = 132.0;     // pixels
constexpr double evaluationSpacing = 24.0;  // minimum in pixels
constexpr double evaluationMark = 10.0;     // pixels; a run's own marks are smaller and filled
constexpr int leastHeight = 96;             // pixels, at the normal text size; with more plots, the area scrolls
constexpr std::size_t beginning = 8;        // first losses whose maximum is a run's initial loss
constexpr double divergence = 10.0;         // factor of the initial loss that counts as divergence

QPen thinPen(const QColor& color) {
  QPen pen(color, 1.0);
  pen.setCosmetic(true);
  return pen;
}

QPen updatePen(const ThemeColors& colors, int index, bool focused) {
  QPen pen = seriesPen(colors, index);
  if (focused) pen.setWidthF(focusedWidth);
  return pen;
}

}  // namespace

LossPlot::LossPlot(PlotHub& hub, QWidget* parent)
    : PlotView(hub, 0, QStringLiteral("lossPlot"), parent),
      curves_(new CurveLayer(canvas().x(), canvas().y(), QStringLiteral("curves"))),
      marks_(new MarkTrack(canvas().x(), QStringLiteral("marks"))),
      linear_(new ValueTicker),
      logarithmic_(new LogTicker) {
  canvas().setAccessibleName(tr("Loss plot"));
  canvas().setLeastHeight(leastHeight);
  canvas().y()->setTicker(linear_);
}

SmoothedSeries& LossPlot::smoothed(RunSeries& run) {
  std::unique_ptr<SmoothedSeries>& entry = smoothed_[&run];
  if (!entry) connect(&run, &QObject::destroyed, this, [this](QObject* gone) { smoothed_.erase(gone); });
  if (!entry || entry->weight() != hub().smoothing())
    entry = std::make_unique<SmoothedSeries>(run.series(Metric::updateLoss), hub().smoothing());
  entry->catchUp();
  return *entry;
}

void LossPlot::rebuild(double pixels) {
  curves_->clear();
  marks_->clear();
  reaches_.clear();
  account_ = {};
  updateScale();
  const QList<RunSeries*> runs = hub().runs();
  const Groups& groups = hub().groups();
  smoothGroups(groups);
  for (RunSeries* run : runs)
    if (isSeed(*run, groups)) addSeed(*run, pixels);
  for (const auto& group : groups) addGroup(drawn(group), pixels);
  for (RunSeries* run : runs)
    if (!isSeed(*run, groups)) addRun(*run, pixels);
  fitY();
  updateBadge(pixels);
}

void LossPlot::updateScale() {
  QCPAxis* y = canvas().y();
  const auto type = hub().logY() ? QCPAxis::stLogarithmic : QCPAxis::stLinear;
  if (y->scaleType() == type) return;
  y->setScaleType(type);
  y->setTicker(hub().logY() ? logarithmic_ : linear_);
}

void LossPlot::addRun(RunSeries& run, double pixels) {
  const ThemeColors& colors = canvas().colors();
  const int index = run.colorIndex();
  const QColor ink = seriesColor(colors, index);
  const QPen pen = updatePen(colors, index, &run == hub().leading());
  const std::size_t lines = curves_->lineCount();
  const SeriesView measured = viewOf(run.series(Metric::updateLoss), hub().clock());
  const SeriesView micro = viewOf(run.series(Metric::microLoss), hub().clock());
  beginReach(measured.size() > 0 ? measured : micro, index);
  addTrace(run, pixels);
  if (measured.size() > 0) reaches_.back().line = curves_->lineCount();
  const bool smooth = hub().smoothing() > 0.0;
  addUpdates(measured, smooth ? thinPen(mixed(ink, colors.surface, rawUnderSmooth)) : pen, pixels);
  SeriesView shown = measured;
  if (smooth) {
    shown = smoothed(run).view(hub().clock());
    const Span x = hub().x();
    curves_->add(LineItem{reduceLine(shown, x.low, x.high, binWidth(x.size(), pixels)), pen});
  }
  if (shown.size() == 1)  // no line
    curves_->add(MarkerItem{{(*shown.clock)[0]}, {(*shown.values)[0]}, index, 7.0, ink});
  else if (hub().runs().size() > 1)
    addMarkers(run, shown, hub().x().size() * markerSpacing / pixels);
  addEvaluations(run, lines, pixels);
  addAccount(run);
}

/// Adds its micro-steps.
void LossPlot::addTrace(const RunSeries& run, double pixels) {
  const Span x = hub().x();
  const ThemeColors& colors = canvas().colors();
  const QColor ink = seriesColor(colors, run.colorIndex());
  const SeriesView view = viewOf(run.series(Metric::microLoss), hub().clock());
  take(view);
  const std::size_t points = pointsWithin(view, x.low, x.high);
  account_.stored += points;
  // With more than two points per pixel a line would become a filled area, so a band is drawn.
  if (static_cast<double>(points) > 2.0 * pixels) {
    account_.reduced = true;
    const double column = binWidth(x.size(), 2.0 * pixels);
    QColor pale = ink;
    pale.setAlphaF(static_cast<float>(bandOpacity));
    curves_->add(BandItem{reduceBand(view, x.low, x.high, column), column, pale});
  } else if (view.size() > 0) {
    const double bin = binWidth(x.size(), pixels);
    curves_->add(LineItem{reduceLine(view, x.low, x.high, bin), thinPen(mixed(ink, colors.surface, traceOpacity))});
  }
}

void LossPlot::addUpdates(const SeriesView& view, const QPen& pen, double pixels) {
  const Span x = hub().x();
  ReducedLine line = reduceLine(view, x.low, x.high, binWidth(x.size(), pixels));
  account_.stored += line.points;
  account_.reduced = account_.reduced || line.reduced;
  curves_->add(LineItem{std::move(line), pen});
}

void LossPlot::addEvaluations(const RunSeries& run, std::size_t ownLinesFrom, double pixels) {
  const SeriesStore& evaluation = run.series(Metric::evaluationLoss);
  if (evaluation.empty()) return;
  const Span x = hub().x();
  const ThemeColors& colors = canvas().colors();
  take(viewOf(evaluation, hub().clock()));
  MarkerItem points{{}, {}, run.colorIndex(), evaluationMark, seriesColor(colors, run.colorIndex()), {}, ownLinesFrom};
  points.inside = colors.surface;
  if (hub().runs().size() > 1) points.halo = colors.surface;
  const ClockColumn& at = evaluation.clock(hub().clock());
  const std::size_t first = at.lowerBound(x.low);
  const std::size_t last = at.upperBound(x.high);
  const double count = static_cast<double>(last - first);
  const double apart = count > 1.0 ? (at[last - 1] - at[first]) / x.size() * pixels / (count - 1.0) : 0.0;
  std::size_t every = 1;
  while (apart > 0.0 && apart * static_cast<double>(every) < evaluationSpacing) every *= 2;
  for (std::size_t i = first + (every - first % every) % every; i < last; i += every) {
    points.x.push_back(at[i]);
    points.y.push_back(evaluation.value(i));
  }
  curves_->add(std::move(points));
}

/// Marks and counts what its curves cannot show.
void LossPlot::addAccount(const RunSeries& run) {
  for (const Metric metric : {Metric::microLoss, Metric::updateLoss, Metric::evaluationLoss}) {
    const SeriesStore& store = run.series(metric);
    marks_->add(store, hub().clock(), canvas().colors().failed);
    account_.notFinite += store.marks().size();
    account_.notPositive += store.countNotPositive();
  }
  account_.notDrawn += run.tracesNotDrawn();
}

bool LossPlot::isSeed(const RunSeries& run, const Groups& groups) const {
  return &run != hub().leading() &&
         std::ranges::any_of(groups, [&run](const auto& group) { return group->holds(&run); });
}

void LossPlot::addSeed(RunSeries& run, double pixels) {
  const ThemeColors& colors = canvas().colors();
  const std::size_t lines = curves_->lineCount();
  const SeriesView view = hub().smoothing() > 0.0 ? smoothed(run).view(hub().clock())
                                                  : viewOf(run.series(Metric::updateLoss), hub().clock());
  beginReach(view, run.colorIndex());
  addUpdates(view, thinPen(mixed(seriesColor(colors, run.colorIndex()), colors.surface, traceOpacity)), pixels);
  addEvaluations(run, lines, pixels);
  addAccount(run);
}

void LossPlot::smoothGroups(const Groups& groups) {
  const double weight = hub().smoothing();
  std::erase_if(smoothedGroups_, [&](const auto& entry) {
    return entry.second->smoothing() != weight || std::ranges::find(groups, entry.first) == groups.end();
  });
  if (!(weight > 0.0)) return;
  for (const auto& group : groups)
    if (!smoothedGroups_.contains(group))
      smoothedGroups_.emplace(group, std::make_shared<const GroupCurve>(group->group(), weight));
}

const GroupCurve& LossPlot::drawn(const std::shared_ptr<const GroupCurve>& group) const {
  const auto smooth = smoothedGroups_.find(group);
  return smooth == smoothedGroups_.end() ? *group : *smooth->second;
}

void LossPlot::addGroup(const GroupCurve& group, double pixels) {
  const Span x = hub().x();
  const double bin = binWidth(x.size(), pixels);
  const Clock clock = hub().clock();
  const ThemeColors& colors = canvas().colors();
  const SeriesView mean = viewOf(group.mean(), clock);
  const SeriesView least = viewOf(group.least(), clock);
  const SeriesView most = viewOf(group.most(), clock);
  beginReach(most, group.colorIndex());
  take(least);
  QColor pale = seriesColor(colors, group.colorIndex());
  pale.setAlphaF(static_cast<float>(bandOpacity));
  curves_->add(AreaItem{reduceLine(least, x.low, x.high, bin), reduceLine(most, x.low, x.high, bin), pale});
  curves_->add(LineItem{reduceLine(mean, x.low, x.high, bin), updatePen(colors, group.colorIndex(), true)});
}

void LossPlot::addMarkers(const RunSeries& run, const SeriesView& view, double spacing) {
  if (view.size() == 0 || !(spacing > 0.0)) return;
  MarkerItem item{{}, {}, run.colorIndex(), 6.0, seriesColor(canvas().colors(), run.colorIndex()), {}};
  // Anchored in data space at a spacing that changes rarely; shifted between runs so that markers do not coincide.
  const double step = niceCeiling(spacing);
  const double shift = std::fmod(0.37 * (run.colorIndex() + 1), 1.0);
  const Span x = hub().x();
  const double latest = (*view.clock)[view.size() - 1];
  for (double k = std::floor(x.low / step) - 1.0; (k + shift) * step <= std::min(x.high, latest); k += 1.0) {
    const std::size_t index = view.clock->lowerBound((k + shift) * step);
    if ((k + shift) * step < x.low || index >= view.size()) continue;
    item.x.push_back((*view.clock)[index]);
    item.y.push_back((*view.values)[index]);
  }
  curves_->add(std::move(item));
}

void LossPlot::beginReach(const SeriesView& losses, int colorIndex) {
  Reach& reach =
      reaches_.emplace_back(Reach{.line = curves_->lineCount(), .color = seriesColor(canvas().colors(), colorIndex)});
  for (std::size_t i = 0; i < std::min(losses.size(), beginning); ++i)
    if (const double value = (*losses.values)[i]; std::isfinite(value)) reach.begun = std::max(reach.begun, value);
  reach.risen = take(losses).high;
}

MinMax LossPlot::take(const SeriesView& view) {
  const Span x = hub().x();
  const MinMax range = valueRange(view, x.low, x.high);
  if (range.empty()) return range;
  double low = range.low;
  if (hub().logY()) {
    low = smallestPositive(view, x.low, x.high);
    if (!std::isfinite(low)) return range;
  }
  reaches_.back().extent.add(low, range.high);
  return range;
}

void LossPlot::fitY() {
  Extent calm;
  for (const Reach& reach : reaches_)
    if (reach.extent.any && reach.risen <= divergence * reach.begun) calm.add(reach.extent.low, reach.extent.high);
  Extent extent;
  std::vector<const Reach*> leaving;
  for (const Reach& reach : reaches_) {
    if (!reach.extent.any) continue;
    const bool grew = reach.begun > 0.0 && reach.risen > divergence * reach.begun;
    const bool flattens = calm.any && reach.extent.high > divergence * std::max(calm.high, reach.begun);
    if (hub().logY() || !grew || !flattens) {
      extent.add(reach.extent.low, reach.extent.high);
      continue;
    }
    leaving.push_back(&reach);
    if (reach.extent.low <= reach.begun) extent.add(reach.extent.low, reach.begun);
  }
  setYRange(fittedY(extent.any ? extent.low : 1.0, extent.any ? extent.high : 0.0, hub().logY()));
  if (hub().y(number())) return;
  for (const Reach* reach : leaving) {
    ++account_.leaving;
    const ReducedLine& line = curves_->lines()[reach->line].line;
    for (std::size_t i = 0; i < line.y.size(); ++i)
      if (line.y[i] > canvas().y()->range().upper) {
        curves_->add(LeavingItem{std::max(line.x[i], hub().x().low), reach->color});
        break;
      }
  }
}

void LossPlot::updateBadge(double pixels) {
  QStringList parts;
  if (account_.notFinite > 0) parts << tr("%1 not finite").arg(countText(static_cast<double>(account_.notFinite)));
  if (account_.leaving > 0)
    parts << (account_.leaving == 1 ? tr("1 run rises out of the axis; log y shows all")
                                    : tr("%1 runs rise out of the axis; log y shows all").arg(account_.leaving));
  if (account_.notDrawn > 0)
    parts << (account_.notDrawn == 1
                  ? tr("1 trace not drawn; all are in the folder")
                  : tr("%1 traces not drawn; all are in the folder").arg(groupedNumber(account_.notDrawn)));
  if (hub().logY() && account_.notPositive > 0)
    parts << tr("log y: %1 points ≤ 0 not drawn").arg(countText(static_cast<double>(account_.notPositive)));
  header().setDrawn(account_.stored, account_.reduced ? pixels : 0.0);
  header().setBadge(parts.join(QStringLiteral(" · ")));
  QString unit = hub().smoothing() > 0.0 ? tr("mean per item; thick: %1").arg(smoothingFormula(hub().smoothing()))
                                         : tr("mean per item; thin: micro-step, thick: update");
  if (!hub().groups().empty())
    unit = hub().smoothing() > 0.0
               ? tr("%1; of several seeds, each smoothed, the mean, and a band from minimum to maximum").arg(unit)
               : tr("%1; of several seeds the mean, and a band from minimum to maximum").arg(unit);
  if (hub().logY()) unit += tr(", log y");
  header().setTitle(tr("Loss"), unit);
}

PlotView::Readout LossPlot::readout(double x) const {
  Readout result;
  result.items.push_back({HeaderItem::Swatch::none, 0, {}, positionText(hub().clock(), x)});
  std::vector<double> values;
  const QList<RunSeries*> runs = hub().runs();
  const Groups& groups = hub().groups();
  for (const RunSeries* run : runs) {
    if (isSeed(*run, groups)) continue;
    const SeriesStore& store = run->series(Metric::updateLoss);
    const SeriesStore& shown = store.empty() ? run->series(Metric::microLoss) : store;
    const std::size_t index = shown.reading(hub().clock(), x);
    if (index >= shown.size()) {
      if (!shown.empty()) result.items.push_back({HeaderItem::Swatch::run, run->colorIndex(), {}, QStringLiteral("–")});
      continue;
    }
    const double value = shown.value(index);
    double drawn = value;
    if (const auto smooth = smoothed_.find(run);
        hub().smoothing() > 0.0 && !store.empty() && smooth != smoothed_.end() && index < smooth->second->size())
      drawn = smooth->second->value(index);
    values.push_back(value);
    const bool smooth = drawn != value && std::isfinite(drawn);
    result.items.push_back(
        {HeaderItem::Swatch::run,
         run->colorIndex(),
         {},
         smooth ? tr("%1 smoothed, %2 raw").arg(valueText(drawn), valueText(value)) : valueText(value)});
    if (std::isfinite(drawn)) result.dots.push_back({shown.clock(hub().clock())[index], drawn, run->colorIndex()});
  }
  for (const auto& group : groups) {
    const SeriesStore& mean = group->mean();
    const std::size_t index = mean.reading(hub().clock(), x);
    if (index >= mean.size()) {
      result.items.push_back({HeaderItem::Swatch::run, group->colorIndex(), {}, QStringLiteral("–")});
      continue;
    }
    const GroupCurve& shown = drawn(group);
    const double value = shown.mean().value(index);
    const QString raw = group->valueText(index);
    const bool smooth = &shown != group.get() && std::isfinite(value) && shown.valueText(index) != raw;
    result.items.push_back({HeaderItem::Swatch::run,
                            group->colorIndex(),
                            {},
                            smooth ? tr("%1 smoothed, %2 raw").arg(shown.valueText(index), raw) : raw});
    values.push_back(mean.value(index));
    if (std::isfinite(value)) result.dots.push_back({mean.clock(hub().clock())[index], value, group->colorIndex()});
  }
  if (values.size() == 2)
    result.items.push_back(
        {HeaderItem::Swatch::none, 0, {}, QStringLiteral("Δ ") + valueText(values[1] - values[0], 3)});
  return result;
}

std::vector<HeaderItem> LossPlot::legend() const {
  std::vector<HeaderItem> items;
  for (const auto& group : hub().groups())
    items.push_back({HeaderItem::Swatch::run, group->colorIndex(), {}, group->name()});
  if (!items.empty()) items.push_back({HeaderItem::Swatch::none, 0, {}, tr("band: min to max")});
  const bool evaluated = std::ranges::any_of(
      hub().runs(), [](const RunSeries* run) { return !run->series(Metric::evaluationLoss).empty(); });
  if (evaluated)
    items.push_back(
        {HeaderItem::Swatch::outline, 0, canvas().colors().text, tr("hollow: evaluation"), {}, tr("hollow: eval.")});
  return items;
}

QString LossPlot::valueAt(const RunSeries& run, double x) const {
  const SeriesStore& store = run.series(Metric::updateLoss);
  const std::size_t index = store.reading(hub().clock(), x);
  return index < store.size() ? tr("loss %1").arg(valueText(store.value(index))) : QString();
}

PlotTable LossPlot::table() const {
  std::vector<TableSeries> columns;
  const QList<RunSeries*> runs = hub().runs();
  for (RunSeries* run : runs) {
    const QString name = run->name();
    columns.push_back({run, &run->series(Metric::updateLoss), name});
    const SeriesStore& evaluation = run->series(Metric::evaluationLoss);
    if (!evaluation.empty()) columns.push_back({run, &evaluation, tr("%1, evaluation").arg(name)});
  }
  for (const auto& group : hub().groups()) {
    RunSeries* const one = group->group().runs.first();
    columns.push_back({one, &group->mean(), group->name(), group});
    columns.push_back({one, &group->least(), tr("%1, min").arg(group->group().name), group});
    columns.push_back({one, &group->most(), tr("%1, max").arg(group->group().name), group});
  }
  return tableOf(hub().clock(), std::move(columns));
}

QString LossPlot::summary() const {
  const QList<RunSeries*> runs = hub().runs();
  if (runs.isEmpty()) return tr("loss: no run");
  const RunSeries& last = *runs.last();
  QString text = runs.size() == 1 ? tr("loss: 1 run") : tr("loss: %1 runs").arg(runs.size());
  if (last.last().update > 0)
    text = tr("%1, last %2 at update %3").arg(text, valueText(last.last().loss), groupedNumber(last.last().update));
  else if (std::isfinite(last.last().microLoss))
    text = tr("%1, last %2 at micro-step %3")
               .arg(text, valueText(last.last().microLoss), groupedNumber(last.last().microStep));
  else
    text = tr("%1, nothing measured yet").arg(text);
  for (const auto& group : hub().groups()) {
    const std::size_t last = group->mean().size() - 1;
    //: %1 the sentence so far, %2 a group of seeds, %3 its mean, least and most
    text = tr("%1; %2 %3 at update %4")
               .arg(text, group->name(), group->valueText(last),
                    groupedNumber(std::llround(group->mean().clock(Clock::update)[last])));
  }
  if (account_.notFinite > 0) text += tr(", %1 values not finite").arg(account_.notFinite);
  if (account_.leaving > 0)
    text += account_.leaving == 1 ? tr(", 1 run rises out of the axis")
                                  : tr(", %1 runs rise out of the axis").arg(account_.leaving);
  return text;
}

}  // namespace accrue::ui
