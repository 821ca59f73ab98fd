// SPDX-License-Identifier: GPL-3.0-or-later
// A run's swatch, a piece of its line with its marker, and its name in little room. Used in the plots, their headers
// and the runs table.
#pragma once

#include <QFontMetrics>
#include <QPainter>
#include <QRectF>
#include <QString>

#include "kit/theme_colors.h"

namespace accrue::ui {

/// A run's marker, centred; eight shapes, then they repeat (with another dash pattern). With a colour inside it is an
/// outline: the mark of an evaluation.
void paintMarker(QPainter& painter, const QPointF& centre, qreal size, int seriesIndex, const QColor& color,
                 const QColor& inside = {});
/// A stretch of line with the marker on it.
void paintSwatch(QPainter& painter, const QRectF& rect, int seriesIndex, const ThemeColors& colors);
/// A run's name in so much room. What tells it from others of its name, a bug or a setting, is shortened last.
QString elidedRunName(const QString& name, const QFontMetrics& metrics, int width);

}  // namespace accrue::ui
