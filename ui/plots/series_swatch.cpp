// SPDX-License-Identifier: GPL-3.0-or-later
#include "plots/series_swatch.h"

#include <QPolygonF>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>

namespace accrue::ui {

namespace {

QPolygonF polygon(const QPointF& centre, qreal radius, int corners, qreal turn) {
  QPolygonF shape;
  for (int i = 0; i < corners; ++i) {
    const qreal angle = turn + 2.0 * M_PI * i / corners;
    shape << centre + QPointF(std::sin(angle), -std::cos(angle)) * radius;
  }
  return shape;
}

}  // namespace

void paintMarker(QPainter& painter, const QPointF& centre, qreal size, int seriesIndex, const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  const qreal r = size / 2.0;
  switch (std::max(seriesIndex, 0) % seriesColorCount) {
    case 0:
      painter.drawEllipse(centre, r, r);
      break;
    case 1:
      painter.drawRect(QRectF(centre - QPointF(r, r) * 0.88, QSizeF(size, size) * 0.88));
      break;
    case 2:
      painter.drawPolygon(polygon(centre + QPointF(0, r * 0.2), r * 1.2, 3, 0.0));
      break;
    case 3:
      painter.drawPolygon(polygon(centre, r * 1.2, 4, 0.0));
      break;
    case 4:
      painter.drawPolygon(polygon(centre - QPointF(0, r * 0.2), r * 1.2, 3, M_PI));
      break;
    case 5:
      painter.drawPolygon(polygon(centre, r * 1.1, 5, 0.0));
      break;
    case 6:
      painter.drawRect(QRectF(centre.x() - r, centre.y() - r * 0.35, size, r * 0.7));
      painter.drawRect(QRectF(centre.x() - r * 0.35, centre.y() - r, r * 0.7, size));
      break;
    default:
      painter.setPen(QPen(color, std::max(size * 0.26, 1.0)));
      painter.drawLine(centre - QPointF(r, r) * 0.85, centre + QPointF(r, r) * 0.85);
      painter.drawLine(centre - QPointF(r, -r) * 0.85, centre + QPointF(r, -r) * 0.85);
      break;
  }
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
    constexpr qsizetype least = 3;  // letters of its own
    if (left >= metrics.horizontalAdvance(own.left(least) + QChar(0x2026)))
      return metrics.elidedText(own, Qt::ElideRight, left) + rest;
  }
  return metrics.elidedText(name, Qt::ElideMiddle, width);
}

}  // namespace accrue::ui
