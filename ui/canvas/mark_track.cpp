// SPDX-License-Identifier: GPL-3.0-or-later
#include "mark_track.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace accrue::ui {

MarkTrack::MarkTrack(QCPAxis* key, const QString& layer) : QCPLayerable(key->parentPlot(), layer), key_(key) {}

void MarkTrack::add(const SeriesStore& store, Clock clock, const QColor& color) {
  const ClockColumn& column = store.clock(clock);
  const std::size_t first = column.lowerBound(key_->range().lower);
  const Chunked<Mark>& marks = store.marks();
  const auto all = std::views::iota(std::size_t{0}, marks.size());
  const auto at = [&marks](std::size_t mark) { return marks[mark].index; };
  double lastPixel = -1e9;
  for (auto mark = std::ranges::lower_bound(all, first, {}, at); mark != all.end(); ++mark) {
    const double x = column[at(*mark)];
    if (x > key_->range().upper) break;
    const double pixel = key_->coordToPixel(x);
    if (pixel - lastPixel < 1.0) continue;
    lastPixel = pixel;
    marks_.push_back({x, marks[*mark].kind, color});
  }
}

void MarkTrack::draw(QCPPainter* painter) {
  const QRect area = clipRect();
  constexpr double r = 3.5;
  for (const Placed& mark : marks_) {
    const double x = std::floor(key_->coordToPixel(mark.x)) + 0.5;
    const double y = area.top() + 3.0 + r;
    QColor faint = mark.color;
    faint.setAlphaF(0.35F);
    painter->setBrush(Qt::NoBrush);
    painter->setAntialiasing(false);
    painter->setPen(QPen(faint, 1.0));
    painter->drawLine(QPointF(x, y + r + 2.0), QPointF(x, area.bottom()));
    painter->setAntialiasing(true);
    painter->setPen(QPen(mark.color, 1.5));
    if (mark.kind == MarkKind::notANumber) {
      painter->drawLine(QPointF(x - r, y - r), QPointF(x + r, y + r));
      painter->drawLine(QPointF(x - r, y + r), QPointF(x + r, y - r));
      continue;
    }
    const double tip = mark.kind == MarkKind::plusInfinity ? -r : r;
    painter->setPen(Qt::NoPen);
    painter->setBrush(mark.color);
    painter->drawPolygon(QPolygonF({{x, y + tip}, {x - r, y - tip}, {x + r, y - tip}}));
  }
}

}  // namespace accrue::ui
