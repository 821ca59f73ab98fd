// SPDX-License-Identifier: GPL-3.0-or-later
// A run's swatch: a piece of its line with its marker. Used in the plots, their headers and the runs table.
#pragma once

#include <QPainter>
#include <QRectF>

#include "style/theme_colors.h"

namespace accrue::ui {

/// A run's marker, centred; eight shapes, then they repeat (with another dash pattern).
void paintMarker(QPainter& painter, const QPointF& centre, qreal size, int seriesIndex, const QColor& color);
/// A stretch of line with the marker on it.
void paintSwatch(QPainter& painter, const QRectF& rect, int seriesIndex, const ThemeColors& colors);

}  // namespace accrue::ui
