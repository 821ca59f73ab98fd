// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/sync_lanes.h"

#include <algorithm>
#include <cmath>

namespace accrue::ui {

namespace {

/// A micro-step narrower than this is not painted as a block.
constexpr double smallestBlock = 4.0;
constexpr double boundarySpacing = 14.0;
constexpr double tallestLane = 30.0;
/// The smallest collective has this part of the lane's height.
constexpr double shortestBar = 0.35;

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
  if (run == nullptr) return;
  for (const auto& [rank, lane] : run->timeline().lanes()) {
    const auto [first, last] = clockOf(lane).spansWithin(key_->range().lower, key_->range().upper);
    shares_ = shares_ || static_cast<double>(last - first) * smallestBlock > clipRect().width();
  }
}

QRectF SyncLanes::laneRect(int lane) const {
  const QRect area = clipRect();
  const double top = value_->coordToPixel(lane);
  const double bottom = value_->coordToPixel(lane + 1);
  const double height = std::max(std::min(bottom - top - laneGap, tallestLane), 2.0);
  const double middle = (top + bottom) / 2.0;
  return {static_cast<double>(area.left()), std::round(middle - height / 2.0), static_cast<double>(area.width()),
          std::round(height)};
}

void SyncLanes::draw(QCPPainter* painter) {
  if (!run_) return;
  const QRect area = clipRect();
  const std::vector<Row> rows = rowsOf(*run_);
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
  // The hatching below stays visible where the rank neither computed nor communicated.
  const double left = std::max(key_->coordToPixel(clock.toX(row.lane->begin())), rect.left());
  const double right = std::min(key_->coordToPixel(clock.toX(row.lane->end())), rect.right() + 1.0);
  if (right > left && row.use == nullptr)
    painter->fillRect(QRectF(left, rect.top(), right - left, rect.height()), QBrush(colors_.waiting, Qt::BDiagPattern));
  if (shares_) {
    drawShares(painter, row, clock, rect);
    return;
  }
  if (row.use == nullptr) drawBlocks(painter, *row.lane, clock, rect);
  if (row.use != nullptr || !byAxis()) drawCollectives(painter, row, clock, rect);
}

void SyncLanes::fill(QCPPainter* painter, const QColor& color, double fromTime, double toTime, const LaneClock& clock,
                     const QRectF& rect) {
  const double left = std::max(std::round(key_->coordToPixel(clock.toX(fromTime))), rect.left());
  const double right =
      std::min(std::max(std::round(key_->coordToPixel(clock.toX(toTime))), left + 1.0), rect.right() + 1.0);
  if (right > left) painter->fillRect(QRectF(left, rect.top(), right - left, rect.height()), color);
}

void SyncLanes::drawSpans(QCPPainter* painter, const std::vector<ComputeSpan>& spans, const QColor& color,
                          const LaneClock& clock, const QRectF& rect) {
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
  // Adjacent micro-steps are separated by a gap if there is room for one.
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
    const double part = shortestBar + (1.0 - shortestBar) * std::sqrt(static_cast<double>(sync->bytes) / largest);
    const double height = std::round(rect.height() * part);
    fill(painter, axisColor(colors_, run_->timeline().axes()[sync->axis]), sync->begin, sync->end, clock,
         QRectF(rect.left(), rect.bottom() - height, rect.width(), height));
  }
}

void SyncLanes::drawShares(QCPPainter* painter, const Row& row, const LaneClock& clock, const QRectF& rect) {
  const Lane& lane = *row.lane;
  const std::vector<QString>& axes = run_->timeline().axes();
  double time = clock.toTime(key_->pixelToCoord(rect.left()));
  LaneShare before = lane.spent(time);
  double usedBefore = row.use != nullptr ? row.use->time.spent(time) : 0.0;
  const double end = key_->coordToPixel(clock.toX(lane.end()));
  for (double pixel = rect.left(); pixel < std::min(rect.right(), end); pixel += 1.0) {
    const double next = clock.toTime(key_->pixelToCoord(pixel + 1.0));
    const LaneShare after = lane.spent(next);
    const double usedAfter = row.use != nullptr ? row.use->time.spent(next) : 0.0;
    const double length = next - time;
    if (length > 0.0) {
      double bottom = rect.bottom();
      const auto stack = [&](const QColor& color, double seconds) {
        const double height = rect.height() * std::clamp(seconds / length, 0.0, 1.0);
        const double top = std::max(bottom - height, rect.top());
        if (bottom - top > 0.05) painter->fillRect(QRectF(pixel, top, 1.0, bottom - top), color);
        bottom = top;
      };
      if (row.use != nullptr) {
        stack(axisColor(colors_, axes[row.use->axis]), usedAfter - usedBefore);
      } else {
        stack(colors_.forward, after.forward - before.forward);
        stack(colors_.backward, after.backward - before.backward);
        stack(colors_.optimizerStep, after.step - before.step);
        if (axes.size() == 1) stack(axisColor(colors_, axes.front()), after.collective - before.collective);
      }
    }
    before = after;
    usedBefore = usedAfter;
    time = next;
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
