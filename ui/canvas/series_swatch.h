// SPDX-License-Identifier: GPL-3.0-or-later
// A run's swatch, a piece of its line with its marker, and its shortened name. Used in the plots, their headers and the
// runs table.
#pragma once

#include <QFontMetrics>
#include <QPainter>
#include <QRectF>
#include <QString>

#include "kit/theme_colors.h"

namespace accrue::ui {

/// Paints a run's marker, centred; the eight shapes repeat with another dash pattern. With an inner colour it is an
/// outline: the mark of an evaluation.
void paintMarker(QPainter& painter, const QPointF& centre, qreal size, int seriesIndex, const QColor& color,
                 const QColor& inside = {});
/// Paints a piece of line with the marker on it.
void paintSwatch(QPainter& painter, const QRectF& rect, int seriesIndex, const ThemeColors& colors);
/// Shortens a run's name to a width. The part that distinguishes it from others of its name, a bug or a setting, is
/// shortened last.
QString elidedRunName(const QString& name, const QFontMetrics& metrics, int width);

}  // namespace accrue::ui
