// SPDX-License-Identifier: GPL-3.0-or-later
#include "sync_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace accrue::ui {

namespace {

/// Width below which a micro-step is not painted as a block.
constexpr double smallestBlock = 4.0;
constexpr double boundarySpacing = 14.0;
constexpr double tallestLane = 30.0;
/// Fraction of the lane's height of the smallest collective.
constexpr double shortestBar = 0.35;
/// Distance by which a collective exceeds its lane.
constexpr double standsOut = 3.0;
/// Width from which a collective has a frame, which distinguishes it from computation without colour.
constexpr double leastFramed = 4.0;
/// Minimum width of a column of shares; wider windows are divided.
constexpr double leastColumn = 6.0;
constexpr double widestColumn = 48.0;

/// The smallest power of two that is at least `least`.
std::size_t powerOfTwo(double least) {
  std::size_t power = 1;
  while (static_cast<double>(power) < least && power < (std::size_t{1} << 40)) power *= 2;
  return power;
}

}  // namespace

SyncLanes::SyncLanes(QCPAxis* key, QCPAxis* value, const QString& layer)
    : QCPLayerable(key->parentPlot(), layer), key_(key), value_(value) {}

std::vector<SyncLanes::Row> SyncLanes::rowsOf(const RunSeries& run) {
  std::vector<Row> rows;
  const std::vector<std::uint8_t> axes = run.timeline().shownAxes();
  for (const auto& [rank, lane] : run.timeline().lanes()) {
    rows.push_back({rank, &lane, nullptr});
    if (axes.size() < 2) continue;
    for (const std::uint8_t axis : axes)
      for (const AxisUse& use : lane.uses)
        if (use.axis == axis) rows.push_back({rank, &lane, &use});
  }
  return rows;
}

void SyncLanes::show(const RunSeries* run, Clock clock, const ThemeColors& colors) {
  run_ = run;
  clock_ = clock;
  colors_ = colors;
  shares_ = false;
  windowsPerColumn_ = 0;
  if (run == nullptr) return;
  for (const auto& [rank, lane] : run->timeline().lanes()) shares_ = shares_ || isDense(clockOf(lane));
  if (!shares_) return;
  const ClockColumn& updates = run->series(Metric::updateLoss).clock(clock);
  const std::size_t first = updates.lowerBound(key_->range().lower);
  const std::size_t last = updates.upperBound(key_->range().upper);
  if (last - first < 2) return;
  const double width = (key_->coordToPixel(updates[last - 1]) - key_->coordToPixel(updates[first])) /
                       static_cast<double>(last - first - 1);
  if (width < widestColumn) windowsPerColumn_ = powerOfTwo(leastColumn / std::max(width, 1e-9));
}

bool SyncLanes::isDense(const LaneClock& clock) const {
  const auto [first, last] = clock.spansWithin(key_->range().lower, key_->range().upper);
  if (last <= first) return false;
  if (clock.isPast(first)) return true;
  // By the width of the spans: a young run beside a long one has few of the plot's pixels.
  const double from = std::max(clock.toX(clock.period(first).first), key_->range().lower);
  const double to = std::min(clock.toX(clock.period(last - 1).second), key_->range().upper);
  return static_cast<double>(last - first) * smallestBlock > key_->coordToPixel(to) - key_->coordToPixel(from);
}

std::vector<double> SyncLanes::columnEdges(const LaneClock& clock) const {
  std::vector<double> edges;
  const QCPRange range = key_->range();
  if (windowsPerColumn_ > 0) {
    const ClockColumn& updates = run_->series(Metric::updateLoss).clock(clock_);
    const std::size_t first = updates.lowerBound(range.lower);
    // Counted from the run's first window, so that columns do not change when the view moves.
    for (std::size_t i = first - first % windowsPerColumn_;; i += windowsPerColumn_) {
      edges.push_back(i == 0 ? clock.toX(0.0) : updates[std::min(i, updates.size()) - 1]);
      if (i >= updates.size() || edges.back() > range.upper) break;
    }
    edges.push_back(std::numeric_limits<double>::infinity());  // the open window
    return edges;
  }
  const auto [first, last] = clock.spansWithin(range.lower, range.upper);
  if (last <= first) return edges;
  const double width = key_->coordToPixel(clock.toX(clock.period(last - 1).second)) -
                       key_->coordToPixel(clock.toX(clock.period(first).first));
  const std::size_t each = powerOfTwo(leastColumn * static_cast<double>(last - first) / std::max(width, 1.0));
  for (std::size_t i = first - first % each; i < last; i += each) edges.push_back(clock.toX(clock.period(i).first));
  edges.push_back(clock.toX(clock.period(last - 1).second));
  return edges;
}

QRectF SyncLanes::laneRect(int lane) const {
  const QRect area = clipRect();
  const double top = value_->coordToPixel(lane);
  const double bottom = value_->coordToPixel(lane + 1);
  const double height = std::max(std::min(bottom - top - laneGap, tallestLane), 2.0);
  const double middle = (top + bottom - standsOut) / 2.0;  // the protruding part is fully drawn in the lowest lane, too
  return {static_cast<double>(area.left()), std::round(middle - height / 2.0), static_cast<double>(area.width()),
          std::round(height)};
}

void SyncLanes::draw(QCPPainter* painter) {
  if (!run_) return;
  const QRect area = clipRect();
  const std::vector<Row> rows = rowsOf(*run_);
  if (rows.empty()) return;  // boundaries divide lanes
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const QRectF rect = laneRect(static_cast<int>(i));
    if (rect.bottom() < area.top() || rect.top() > area.bottom()) continue;
    if (byAxis() && i > 0 && rows[i].use == nullptr) {
      const double y = std::round(value_->coordToPixel(static_cast<double>(i))) - 0.5;
      painter->setPen(QPen(colors_.hairline, 1.0));
      painter->drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    }
    drawRow(painter, rows[i], rect);
  }
  drawBoundaries(painter);
}

void SyncLanes::drawRow(QCPPainter* painter, const Row& row, const QRectF& rect) {
  const LaneClock clock = clockOf(*row.lane);
  // The hatching below stays visible while the rank neither computed nor communicated.
  if (row.use == nullptr) hatch(painter, row.lane->begin(), row.lane->end(), clock, rect);
  if (shares_) {
    drawShares(painter, row, clock, rect);
    return;
  }
  if (row.use == nullptr) drawBlocks(painter, *row.lane, clock, rect);
  if (row.use != nullptr || !byAxis()) drawCollectives(painter, row, clock, rect);
}

QRectF SyncLanes::fill(QCPPainter* painter, const QColor& color, double fromTime, double toTime, const LaneClock& clock,
                       const QRectF& rect) {
  const double left = std::max(std::round(key_->coordToPixel(clock.toX(fromTime))), rect.left());
  const double right =
      std::min(std::max(std::round(key_->coordToPixel(clock.toX(toTime))), left + 1.0), rect.right() + 1.0);
  if (right <= left) return {};
  const QRectF filled(left, rect.top(), right - left, rect.height());
  painter->fillRect(filled, color);
  return filled;
}

void SyncLanes::drawSpans(QCPPainter* painter, const SpanTrack& spans, const QColor& color, const LaneClock& clock,
                          const QRectF& rect) {
  const double from = clock.toTime(key_->range().lower);
  const double to = clock.toTime(key_->range().upper);
  auto span = std::lower_bound(spans.begin(), spans.end(), from,
                               [](const ComputeSpan& each, double t) { return each.end() < t; });
  for (; span != spans.end() && span->begin <= to; ++span) fill(painter, color, span->begin, span->end(), clock, rect);
}

void SyncLanes::drawBlocks(QCPPainter* painter, const Lane& lane, const LaneClock& clock, const QRectF& rect) {
  drawSpans(painter, lane.forward, colors_.forward, clock, rect);
  drawSpans(painter, lane.backward, colors_.backward, clock, rect);
  drawSpans(painter, lane.step, colors_.optimizerStep, clock, rect);
  // A gap separates adjacent micro-steps if there is room for one.
  const auto [first, last] = clock.spansWithin(key_->range().lower, key_->range().upper);
  for (std::size_t i = first; i < last; ++i) {
    const auto [begin, end] = clock.period(i);
    const double left = std::round(key_->coordToPixel(clock.toX(begin)));
    const double width = key_->coordToPixel(clock.toX(end)) - left;
    if (width >= 12.0) painter->fillRect(QRectF(left, rect.top(), 1.0, rect.height()), colors_.surface);
  }
}

void SyncLanes::drawCollectives(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect) {
  const double from = clock.toTime(key_->range().lower);
  const double to = clock.toTime(key_->range().upper);
  const double largest = static_cast<double>(std::max<std::int64_t>(run_->timeline().largestBytes(), 1));
  const auto end = row.lane->sync.end();
  for (auto sync = row.lane->syncReaching(from); sync != end && sync->begin <= to; ++sync) {
    if (row.use != nullptr && sync->axis != row.use->axis) continue;
    if (row.use != nullptr && sync->transfer > sync->begin) hatch(painter, sync->begin, sync->transfer, clock, rect);
    if (sync->transfer >= sync->end) continue;
    if (sync->isAside()) {
      const QRectF foot(rect.left(), rect.bottom() - standsOut, rect.width(), standsOut);
      fill(painter, colors_.muted, sync->transfer, sync->end, clock, foot);
      continue;
    }
    const double part = shortestBar + (1.0 - shortestBar) * std::sqrt(static_cast<double>(sync->bytes) / largest);
    const double height = std::round(rect.height() * part);
    const QRectF bar(rect.left(), rect.bottom() - height, rect.width(), height + standsOut);
    const QRectF filled =
        fill(painter, axisColor(colors_, run_->timeline().axes()[sync->axis]), sync->transfer, sync->end, clock, bar);
    if (filled.width() < leastFramed) continue;
    painter->setPen(QPen(colors_.text, 1.0));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(filled.adjusted(0.0, 0.0, -1.0, -1.0));
  }
}

void SyncLanes::hatch(QCPPainter* painter, double fromTime, double toTime, const LaneClock& clock, const QRectF& rect) {
  const double left = std::max(key_->coordToPixel(clock.toX(fromTime)), rect.left());
  const double right = std::min(key_->coordToPixel(clock.toX(toTime)), rect.right() + 1.0);
  if (right > left)
    painter->fillRect(QRectF(left, rect.top(), right - left, rect.height()), QBrush(colors_.waiting, Qt::BDiagPattern));
}

void SyncLanes::drawShares(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect) {
  const Lane& lane = *row.lane;
  const std::vector<QString>& axes = run_->timeline().axes();
  const std::vector<double> edges = columnEdges(clock);
  const double laneEnd = clock.toX(lane.end());
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double begin = clock.toTime(edges[i]);
    const double end = edges[i + 1] < laneEnd ? clock.toTime(edges[i + 1]) : lane.end();
    const double left = std::max(std::round(key_->coordToPixel(edges[i])), rect.left());
    const double right = std::min(std::round(key_->coordToPixel(std::min(edges[i + 1], laneEnd))), rect.right() + 1.0);
    const double shown = clock.shown(begin, end);
    if (!(shown > 0.0) || right <= left) continue;
    const double width = right - left >= leastColumn / 2.0 ? right - left - 1.0 : right - left;
    const LaneShare before = lane.spent(begin);
    const LaneShare after = lane.spent(end);
    double bottom = rect.bottom();
    const auto stack = [&](const QColor& color, double seconds) {
      const double height = rect.height() * std::clamp(seconds / shown, 0.0, 1.0);
      const double top = std::max(bottom - height, rect.top());
      if (bottom - top > 0.05) painter->fillRect(QRectF(left, top, width, bottom - top), color);
      bottom = top;
    };
    double transferred = 0.0, aside = 0.0;
    if (row.use != nullptr) {
      transferred = row.use->time.training(end) - row.use->time.training(begin);
      aside = row.use->time.aside(end) - row.use->time.aside(begin);
    } else if (axes.size() == 1) {
      transferred = after.collective - before.collective;
      aside = after.aside - before.aside;
    }
    if (transferred > 0.0) {
      const QColor color = axisColor(colors_, axes[row.use != nullptr ? row.use->axis : 0]);
      painter->fillRect(QRectF(left, rect.bottom(), width, standsOut), color);
      stack(color, transferred);
    }
    stack(colors_.muted, aside);
    if (row.use == nullptr) {
      stack(colors_.forward, after.forward - before.forward);
      stack(colors_.backward, after.backward - before.backward);
      stack(colors_.optimizerStep, after.step - before.step);
    }
    // The rest is waiting: the hatching beneath.
    if (width < right - left) painter->fillRect(QRectF(right - 1.0, rect.top(), 1.0, rect.height()), colors_.surface);
  }
}

void SyncLanes::drawBoundaries(QCPPainter* painter) {
  const ClockColumn& updates = run_->series(Metric::updateLoss).clock(clock_);
  const std::size_t first = updates.lowerBound(key_->range().lower);
  const std::size_t last = updates.upperBound(key_->range().upper);
  const QRect area = clipRect();
  if (last <= first) return;
  const double span = key_->coordToPixel(updates[last - 1]) - key_->coordToPixel(updates[first]);
  if (span < boundarySpacing * static_cast<double>(last - first - 1)) return;  // a fence would hide the lanes
  painter->setPen(QPen(colors_.text, 1.0));
  for (std::size_t i = first; i < last; ++i) {
    const double x = std::round(key_->coordToPixel(updates[i])) + 0.5;
    painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
}

}  // namespace accrue::ui
