// SPDX-License-Identifier: GPL-3.0-or-later
#include "curve_layer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "series_swatch.h"

namespace accrue::ui {

namespace {

/// Coordinates far outside the picture overflow the rasteriser; clamping them is invisible.
constexpr double farOutside = 1e5;

double bounded(double pixel) {
  return std::clamp(pixel, -farOutside, farOutside);
}

/// Exported pictures use no cosmetic pens, so that line widths scale with the picture.
bool isPicture(const QCPPainter& painter) {
  return painter.modes().testFlag(QCPPainter::pmNonCosmetic);
}

QPen penFor(const QCPPainter& painter, QPen pen) {
  pen.setCosmetic(!isPicture(painter) && pen.widthF() <= 1.0);
  return pen;
}

}  // namespace

CurveLayer::CurveLayer(QCPAxis* key, QCPAxis* value, const QString& layer)
    : QCPLayerable(key->parentPlot(), layer), key_(key), value_(value) {}

void CurveLayer::clear() {
  areas_.clear();
  bands_.clear();
  lines_.clear();
  markers_.clear();
  leaving_.clear();
}

std::size_t CurveLayer::pointsShown() const {
  std::size_t count = 0;
  for (const LineItem& item : lines_) count += item.line.x.size();
  for (const BandItem& item : bands_) count += item.columns.size();
  for (const AreaItem& item : areas_) count += item.low.x.size() + item.high.x.size();
  return count;
}

QRect CurveLayer::clipRect() const {
  return key_->axisRect()->rect();
}

void CurveLayer::applyDefaultAntialiasingHint(QCPPainter* painter) const {
  painter->setAntialiasing(true);
}

void CurveLayer::draw(QCPPainter* painter) {
  painter->setAntialiasing(false);
  for (const AreaItem& area : areas_) drawArea(painter, area);
  for (const BandItem& band : bands_) drawBand(painter, band);
  painter->setAntialiasing(true);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    drawHalos(painter, i);
    drawLine(painter, lines_[i]);
  }
  // A mark at the edge of the plot is not clipped.
  painter->setClipRect(clipRect().adjusted(-8, -8, 8, 8));
  for (const MarkerItem& markers : markers_) drawMarkers(painter, markers);
  for (const LeavingItem& item : leaving_) drawLeaving(painter, item);
}

void CurveLayer::drawArea(QCPPainter* painter, const AreaItem& area) {
  const bool logarithmic = value_->scaleType() == QCPAxis::stLogarithmic;
  const double floor = value_->range().lower;
  const auto stretches = [&](const ReducedLine& line) {
    std::vector<QPolygonF> parts(1);
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (std::isfinite(line.y[i]))
        parts.back().append(
            QPointF(bounded(key_->coordToPixel(line.x[i])),
                    bounded(value_->coordToPixel(logarithmic && line.y[i] <= 0.0 ? floor : line.y[i]))));
      else if (!parts.back().isEmpty())
        parts.emplace_back();
    }
    return parts;
  };
  // Both lines have their gaps at the same points.
  const std::vector<QPolygonF> low = stretches(area.low);
  std::vector<QPolygonF> high = stretches(area.high);
  painter->setPen(Qt::NoPen);
  painter->setBrush(area.color);
  for (std::size_t i = 0; i < std::min(low.size(), high.size()); ++i) {
    std::copy(low[i].rbegin(), low[i].rend(), std::back_inserter(high[i]));
    painter->drawPolygon(high[i]);
  }
}

void CurveLayer::drawBand(QCPPainter* painter, const BandItem& band) {
  const bool logarithmic = value_->scaleType() == QCPAxis::stLogarithmic;
  const double floor = value_->range().lower;
  // Edges are between device pixels, which are smaller than the plot's if its ratio is above 1.
  const double ratio = painter->device() == nullptr ? 1.0 : painter->device()->devicePixelRatioF();
  const double pixel = 1.0 / ratio;
  const auto before = [ratio](double at) { return std::floor(at * ratio) / ratio; };
  const auto after = [ratio](double at) { return std::ceil(at * ratio) / ratio; };
  bars_.clear();
  double previousRight = -farOutside;
  for (const BandColumn& column : band.columns) {
    if (logarithmic && column.high <= 0.0) continue;
    const double low = logarithmic && column.low <= 0.0 ? floor : column.low;
    const double top = bounded(before(value_->coordToPixel(column.high)));
    const double bottom = std::max(bounded(after(value_->coordToPixel(low))), top + pixel);
    const double end = before(key_->coordToPixel(column.x + band.width / 2.0));
    // Share the pixel of the previous bar; a pixel of its own would shift all that follow.
    if (!bars_.isEmpty() && end <= previousRight) {
      QRectF& shared = bars_.back();
      shared.setTop(std::min(shared.top(), top));
      shared.setBottom(std::max(shared.bottom(), bottom));
      continue;
    }
    const double left = std::max(before(key_->coordToPixel(column.x - band.width / 2.0)), previousRight);
    const double right = std::max(end, left + pixel);
    bars_.append(QRectF(left, top, right - left, bottom - top));
    previousRight = right;
  }
  painter->setPen(Qt::NoPen);
  painter->setBrush(band.color);
  painter->drawRects(bars_);
}

void CurveLayer::drawLine(QCPPainter* painter, const LineItem& item) {
  const bool logarithmic = value_->scaleType() == QCPAxis::stLogarithmic;
  run_.clear();
  const QPen pen = penFor(*painter, item.pen);
  for (std::size_t i = 0; i < item.line.x.size(); ++i) {
    const double y = item.line.y[i];
    if (!(y - y == 0.0) || (logarithmic && y <= 0.0)) {
      flush(painter, pen);
      continue;
    }
    run_.append(QPointF(bounded(key_->coordToPixel(item.line.x[i])), bounded(value_->coordToPixel(y))));
  }
  flush(painter, pen);
}

void CurveLayer::flush(QCPPainter* painter, const QPen& pen) {
  if (run_.size() > 1) {
    stroke(painter, pen);
  } else if (run_.size() == 1) {
    painter->setPen(Qt::NoPen);
    painter->setBrush(pen.color());
    painter->drawEllipse(run_.first(), 1.5, 1.5);
  }
  run_.clear();
}

void CurveLayer::stroke(QCPPainter* painter, const QPen& pen) {
  const qreal ratio = pen.isCosmetic() || painter->device() == nullptr ? 1.0 : painter->device()->devicePixelRatioF();
  painter->setBrush(Qt::NoBrush);
  if (pen.widthF() * ratio <= 1.0 || painter->modes().testFlag(QCPPainter::pmVectorized)) {
    painter->setPen(pen);
    painter->drawPolyline(run_);
    return;
  }
  pieces_.clear();
  if (pen.style() == Qt::SolidLine) {
    for (qsizetype i = 1; i < run_.size(); ++i) pieces_.append(QLineF(run_[i - 1], run_[i]));
  } else {
    cutIntoDashes(pen);
  }
  painter->setPen(
      QPen(pen.color(), pen.widthF(), Qt::SolidLine, pen.style() == Qt::SolidLine ? Qt::SquareCap : Qt::FlatCap));
  painter->drawLines(pieces_);
}

void CurveLayer::cutIntoDashes(const QPen& pen) {
  QVector<qreal> pattern = pen.dashPattern();
  qreal period = 0.0;
  for (qreal& part : pattern) {
    part = std::max(part * pen.widthF(), 0.1);
    period += part;
  }
  if (pattern.isEmpty()) return;
  const QRectF visible = QRectF(clipRect()).adjusted(-10, -10, 10, 10);
  qsizetype part = 0;
  qreal left = pattern.first();
  for (qsizetype i = 1; i < run_.size(); ++i) {
    const QLineF segment(run_[i - 1], run_[i]);
    const qreal length = segment.length();
    const QRectF box = QRectF(segment.p1(), segment.p2()).normalized().adjusted(-1, -1, 1, 1);
    const bool seen = box.intersects(visible);
    // Outside the visible area only the place within the pattern matters.
    const qreal end = seen ? length : std::fmod(length, period);
    for (qreal at = 0.0; at < end;) {
      const qreal step = std::min(left, end - at);
      if (seen && part % 2 == 0)
        pieces_.append(QLineF(segment.pointAt(at / length), segment.pointAt((at + step) / length)));
      at += step;
      left -= step;
      if (left > 1e-9) break;
      part = (part + 1) % pattern.size();
      left = pattern[part];
    }
  }
}

std::optional<QPointF> CurveLayer::placeOf(const MarkerItem& item, std::size_t point) const {
  const double y = item.y[point];
  if (!std::isfinite(y) || (value_->scaleType() == QCPAxis::stLogarithmic && y <= 0.0)) return {};
  const QPointF centre(key_->coordToPixel(item.x[point]), value_->coordToPixel(y));
  return QRectF(clipRect()).adjusted(-1, -1, 1, 1).contains(centre) ? std::optional(centre) : std::nullopt;
}

void CurveLayer::drawHalos(QCPPainter* painter, std::size_t line) const {
  for (const MarkerItem& item : markers_) {
    if (!item.halo.isValid() || item.ownLinesFrom != line) continue;
    painter->setPen(Qt::NoPen);
    painter->setBrush(item.halo);
    for (std::size_t i = 0; i < item.x.size(); ++i)
      if (const auto centre = placeOf(item, i))
        painter->drawEllipse(*centre, item.size / 2.0 + 2.0, item.size / 2.0 + 2.0);
  }
}

void CurveLayer::drawLeaving(QCPPainter* painter, const LeavingItem& item) const {
  constexpr double half = 5.0;
  const double x = std::max(key_->coordToPixel(item.x), clipRect().left() + half);
  const double top = clipRect().top();
  painter->setPen(Qt::NoPen);
  painter->setBrush(item.color);
  painter->drawPolygon(QPolygonF({{x, top}, {x - half, top + 2.0 * half}, {x + half, top + 2.0 * half}}));
}

void CurveLayer::drawMarkers(QCPPainter* painter, const MarkerItem& item) const {
  for (std::size_t i = 0; i < item.x.size(); ++i)
    if (const auto centre = placeOf(item, i))
      paintMarker(*painter, *centre, item.size, item.seriesIndex, item.color, item.inside);
}

}  // namespace accrue::ui
