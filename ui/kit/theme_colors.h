// SPDX-License-Identifier: GPL-3.0-or-later
// The palette: every colour of the studio, light and dark. Values only; theme.h applies them to the application.
#pragma once

#include <QColor>
#include <QPalette>
#include <QPen>
#include <QString>
#include <array>

#include "accrue/run/events/run_state.h"

namespace accrue::ui {

inline constexpr int seriesColorCount = 8;

struct ThemeColors {
  bool dark = false;
  QColor window, surface, text, muted, hairline, plotGrid, accent;
  QColor frame;  ///< around fields and boxes
  std::array<QColor, seriesColorCount> series;
  QColor running, paused, degraded, failed, finished, idle;
  // Sync strip, timeline, pool and previews: three tints of one hue, and a second hue for collectives.
  QColor forward, backward, optimizerStep, waiting, collective;
};

const ThemeColors& lightColors();
const ThemeColors& darkColors();
/// Black on white or white on black, without muted text.
const ThemeColors& contrastColors(bool dark);
/// Whether the palette is pure black on white or white on black, chosen for contrast.
bool isHighContrast(const QPalette& palette);
/// Chooses light or dark by whether the window or its text is lighter. With a high-contrast palette, surfaces and text
/// keep the palette's colours.
ThemeColors themeColors(const QPalette& palette);
bool isDark(const QPalette& palette);
/// Our palette for widgets.
QPalette widgetPalette(const ThemeColors& colors);

/// Colour of a run. After eight the hues repeat with another dash pattern.
QColor seriesColor(const ThemeColors& colors, int index);
Qt::PenStyle seriesDash(int index);
/// A one-pixel pen: wider ones leave QCustomPlot's fast path.
QPen seriesPen(const ThemeColors& colors, int index, double opacity = 1.0);
/// Shade of communication over an axis ("data", "tensor", "pipeline", ...), all of one hue.
QColor axisColor(const ThemeColors& colors, const QString& axis);
QColor stateColor(const ThemeColors& colors, accrue::RunState state);
/// Mixes two colours as if painted with an opacity; pens stay opaque, which is faster than blending.
QColor mixed(const QColor& over, const QColor& under, double opacity);

/// WCAG 2 contrast ratio, 1..21.
double contrastRatio(const QColor& a, const QColor& b);

}  // namespace accrue::ui
