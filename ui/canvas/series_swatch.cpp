// SPDX-License-Identifier: GPL-3.0-or-later
#include "series_swatch.h"

#include <QPainterPath>
#include <QPolygonF>
#include <QRegularExpression>
#include <QTransform>
#include <algorithm>
#include <cmath>

namespace accrue::ui {

namespace {

constexpr qreal outlineWidth = 1.5;

QPolygonF polygon(const QPointF& centre, qreal radius, int corners, qreal turn) {
  QPolygonF shape;
  for (int i = 0; i < corners; ++i) {
    const qreal angle = turn + 2.0 * M_PI * i / corners;
    shape << centre + QPointF(std::sin(angle), -std::cos(angle)) * radius;
  }
  return shape;
}

/// Two bars, upright and level, or turned by an eighth.
QPainterPath cross(const QPointF& centre, qreal radius, qreal half, qreal degrees) {
  QPainterPath bars;
  bars.addRect(QRectF(-radius, -half, 2.0 * radius, 2.0 * half));
  QPainterPath upright;
  upright.addRect(QRectF(-half, -radius, 2.0 * half, 2.0 * radius));
  return QTransform().translate(centre.x(), centre.y()).rotate(degrees).map(bars.united(upright));
}

QPainterPath markerShape(const QPointF& centre, qreal r, int index) {
  QPainterPath shape;
  switch (index) {
    case 0:
      shape.addEllipse(centre, r, r);
      break;
    case 1:
      shape.addRect(QRectF(centre - QPointF(r, r) * 0.88, QSizeF(r, r) * 1.76));
      break;
    case 2:
      shape.addPolygon(polygon(centre + QPointF(0, r * 0.2), r * 1.2, 3, 0.0));
      break;
    case 3:
      shape.addPolygon(polygon(centre, r * 1.2, 4, 0.0));
      break;
    case 4:
      shape.addPolygon(polygon(centre - QPointF(0, r * 0.2), r * 1.2, 3, M_PI));
      break;
    case 5:
      shape.addPolygon(polygon(centre, r * 1.1, 5, 0.0));
      break;
    case 6:
      return cross(centre, r, r * 0.35, 0.0);
    default:
      return cross(centre, r * 1.3, std::max(r * 0.26, 0.5), 45.0);
  }
  shape.closeSubpath();
  return shape;
}

}  // namespace

void paintMarker(QPainter& painter, const QPointF& centre, qreal size, int seriesIndex, const QColor& color,
                 const QColor& inside) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  const QPainterPath shape = markerShape(centre, size / 2.0, std::max(seriesIndex, 0) % seriesColorCount);
  if (inside.isValid())
    painter.setPen(QPen(color, outlineWidth));
  else
    painter.setPen(Qt::NoPen);
  painter.setBrush(inside.isValid() ? inside : color);
  painter.drawPath(shape);
  painter.restore();
}

void paintSwatch(QPainter& painter, const QRectF& rect, int seriesIndex, const ThemeColors& colors) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  const qreal middle = std::floor(rect.center().y());
  painter.setPen(seriesPen(colors, seriesIndex));
  painter.drawLine(QPointF(rect.left(), middle), QPointF(rect.right(), middle));
  paintMarker(painter, QPointF(rect.center().x(), middle + 0.5), std::min<qreal>(7.0, rect.height()), seriesIndex,
              seriesColor(colors, seriesIndex));
  painter.restore();
}

QString elidedRunName(const QString& name, const QFontMetrics& metrics, int width) {
  if (metrics.horizontalAdvance(name) <= width) return name;
  static const QRegularExpression telling(QStringLiteral(" \\(|, "));
  const qsizetype at = name.indexOf(telling);
  if (at > 0) {
    const QString own = name.left(at);
    const QString rest = name.mid(at);
    const int left = width - metrics.horizontalAdvance(rest);
    constexpr qsizetype least = 3;  // minimum letters of its own
    if (left >= metrics.horizontalAdvance(own.left(least) + QChar(0x2026)))
      return metrics.elidedText(own, Qt::ElideRight, left) + rest;
  }
  return metrics.elidedText(name, Qt::ElideMiddle, width);
}

}  // namespace accrue::ui
