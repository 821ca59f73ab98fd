// SPDX-License-Identifier: GPL-3.0-or-later
#include "theme_colors.h"

#include <algorithm>
#include <cmath>

namespace accrue::ui {

namespace {

QColor rgb(QRgb value) {
  return QColor::fromRgb(value);
}

ThemeColors makeLight() {
  ThemeColors colors;
  colors.dark = false;
  colors.window = rgb(0xF5F6F7);
  colors.surface = rgb(0xFFFFFF);
  colors.text = rgb(0x1B1F24);
  colors.muted = rgb(0x57606A);
  colors.hairline = rgb(0xC9CED6);
  colors.frame = rgb(0x767E88);
  colors.plotGrid = rgb(0xE4E7EB);
  colors.accent = rgb(0x0B62B8);
  // The first ones are the furthest apart, because most plots show few runs.
  colors.series = {rgb(0x0B62B8), rgb(0xBD0A52), rgb(0x7A9315), rgb(0x493B04),
                   rgb(0x660566), rgb(0xB86B99), rgb(0x520ABD), rgb(0xF42FF4)};
  colors.running = colors.accent;
  colors.paused = rgb(0x8F5F00);
  colors.degraded = rgb(0x8F5F00);
  colors.failed = rgb(0xB3261E);
  colors.finished = rgb(0x1A7A36);
  colors.idle = colors.muted;
  colors.forward = rgb(0xA9CBEC);
  colors.backward = rgb(0x5596D4);
  colors.optimizerStep = rgb(0x052A54);
  colors.waiting = rgb(0xA8AFB8);
  colors.collective = rgb(0xA0460A);
  return colors;
}

ThemeColors makeDark() {
  ThemeColors colors;
  colors.dark = true;
  colors.window = rgb(0x16191C);
  colors.surface = rgb(0x1E2226);
  colors.text = rgb(0xE8EAED);
  colors.muted = rgb(0xA3ABB5);
  colors.hairline = rgb(0x444C56);
  colors.frame = rgb(0x6B7480);
  colors.plotGrid = rgb(0x2C3238);
  colors.accent = rgb(0x6CB2F5);
  colors.series = {rgb(0x6CB2F5), rgb(0xE06F24), rgb(0xE0E024), rgb(0x765AE7),
                   rgb(0xF3AAB9), rgb(0xB6EF8F), rgb(0xBA4AA4), rgb(0x957A50)};
  colors.running = colors.accent;
  colors.paused = rgb(0xE3B341);
  colors.degraded = rgb(0xE3B341);
  colors.failed = rgb(0xFF8A80);
  colors.finished = rgb(0x66CF7C);
  colors.idle = colors.muted;
  colors.forward = rgb(0x2B5480);
  colors.backward = rgb(0x4586C4);
  colors.optimizerStep = rgb(0xE9F4FF);
  colors.waiting = rgb(0x59626C);
  colors.collective = rgb(0xEFA45C);
  return colors;
}

ThemeColors makeContrast(bool dark) {
  ThemeColors colors = dark ? makeDark() : makeLight();
  colors.window = colors.surface = dark ? rgb(0x000000) : rgb(0xFFFFFF);
  colors.text = colors.muted = colors.hairline = colors.frame = colors.idle = dark ? rgb(0xFFFFFF) : rgb(0x000000);
  colors.plotGrid = mixed(colors.text, colors.surface, 0.3);
  colors.accent = colors.running = dark ? rgb(0x8FCBFF) : rgb(0x003E8A);
  return colors;
}

double channel(int value) {
  const double c = value / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& color) {
  return 0.2126 * channel(color.red()) + 0.7152 * channel(color.green()) + 0.0722 * channel(color.blue());
}

}  // namespace

const ThemeColors& lightColors() {
  static const ThemeColors colors = makeLight();
  return colors;
}

const ThemeColors& darkColors() {
  static const ThemeColors colors = makeDark();
  return colors;
}

const ThemeColors& contrastColors(bool dark) {
  static const ThemeColors bright = makeContrast(false);
  static const ThemeColors black = makeContrast(true);
  return dark ? black : bright;
}

bool isHighContrast(const QPalette& palette) {
  const QRgb window = palette.color(QPalette::Active, QPalette::Window).rgb();
  const QRgb text = palette.color(QPalette::Active, QPalette::WindowText).rgb();
  const QRgb base = palette.color(QPalette::Active, QPalette::Base).rgb();
  constexpr QRgb black = 0xFF000000U;
  constexpr QRgb white = 0xFFFFFFFFU;
  return base == window && ((window == black && text == white) || (window == white && text == black));
}

bool isDark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

ThemeColors themeColors(const QPalette& palette) {
  if (isHighContrast(palette)) return contrastColors(isDark(palette));
  ThemeColors colors = isDark(palette) ? darkColors() : lightColors();
  if (palette.color(QPalette::Active, QPalette::Window).rgb() == colors.window.rgb()) return colors;
  const auto active = [&palette](QPalette::ColorRole role) { return palette.color(QPalette::Active, role); };
  colors.window = active(QPalette::Window);
  colors.surface = active(QPalette::Base);
  colors.text = active(QPalette::Text);
  colors.muted = mixed(colors.text, colors.surface, 0.8);
  colors.hairline = mixed(colors.text, colors.surface, 0.5);
  colors.frame = mixed(colors.text, colors.surface, 0.6);
  colors.plotGrid = mixed(colors.text, colors.surface, 0.25);
  return colors;
}

QPalette widgetPalette(const ThemeColors& colors) {
  QPalette palette;
  const bool contrast = colors.muted == colors.text;
  const QColor button = mixed(colors.text, colors.surface, colors.dark ? 0.07 : 0.02);
  palette.setColor(QPalette::Window, colors.window);
  palette.setColor(QPalette::WindowText, colors.text);
  palette.setColor(QPalette::Base, colors.surface);
  palette.setColor(QPalette::AlternateBase, mixed(colors.window, colors.surface, 0.6));
  palette.setColor(QPalette::ToolTipBase, contrast ? colors.surface : colors.dark ? rgb(0x2C3238) : rgb(0xFFFFFF));
  palette.setColor(QPalette::ToolTipText, colors.text);
  palette.setColor(QPalette::PlaceholderText, contrast ? colors.text : mixed(colors.muted, colors.surface, 0.9));
  palette.setColor(QPalette::Text, colors.text);
  palette.setColor(QPalette::Button, button);
  palette.setColor(QPalette::ButtonText, colors.text);
  palette.setColor(QPalette::BrightText, colors.failed);
  palette.setColor(QPalette::Link, colors.accent);
  palette.setColor(QPalette::LinkVisited, mixed(colors.accent, colors.text, 0.6));
  palette.setColor(QPalette::Highlight, colors.accent);
  palette.setColor(QPalette::HighlightedText, colors.dark ? colors.window : rgb(0xFFFFFF));
  palette.setColor(QPalette::Light, colors.dark ? mixed(colors.text, button, 0.12) : rgb(0xFFFFFF));
  palette.setColor(QPalette::Midlight, mixed(colors.hairline, button, 0.5));
  palette.setColor(QPalette::Mid, colors.hairline);
  palette.setColor(QPalette::Dark, colors.dark ? rgb(0x0E1012) : mixed(colors.text, colors.hairline, 0.25));
  palette.setColor(QPalette::Shadow, colors.dark ? rgb(0x000000) : mixed(colors.text, colors.hairline, 0.5));
  const QColor off = mixed(colors.text, colors.window, contrast ? 0.6 : 0.45);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::PlaceholderText})
    palette.setColor(QPalette::Disabled, role, off);
  palette.setColor(QPalette::Disabled, QPalette::Base, colors.window);
  palette.setColor(QPalette::Disabled, QPalette::Highlight, colors.hairline);
  palette.setColor(QPalette::Disabled, QPalette::HighlightedText, off);
  return palette;
}

QColor seriesColor(const ThemeColors& colors, int index) {
  return colors.series[static_cast<std::size_t>(std::max(index, 0)) % colors.series.size()];
}

Qt::PenStyle seriesDash(int index) {
  constexpr std::array styles = {Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DashDotDotLine};  // dots: planned
  return styles[static_cast<std::size_t>(std::max(index, 0) / seriesColorCount) % styles.size()];
}

QPen seriesPen(const ThemeColors& colors, int index, double opacity) {
  // Pale lines are unsuitable for a high-contrast palette.
  constexpr double least_in_contrast = 0.7;
  const double shown = colors.muted == colors.text ? std::max(opacity, least_in_contrast) : opacity;
  QPen pen(mixed(seriesColor(colors, index), colors.surface, shown), 1.0, seriesDash(index));
  pen.setCosmetic(
      true);  // one pixel of the device: a wider antialiased polyline takes seconds to draw if points are dense
  return pen;
}

QColor axisColor(const ThemeColors& colors, const QString& axis) {
  if (axis == QLatin1String("tensor")) return mixed(colors.text, colors.collective, 0.45);
  if (axis == QLatin1String("pipeline")) return mixed(colors.surface, colors.collective, 0.45);
  if (axis == QLatin1String("data")) return colors.collective;
  return mixed(colors.accent, colors.collective, 0.5);
}

QColor stateColor(const ThemeColors& colors, accrue::RunState state) {
  switch (state) {
    case accrue::RunState::idle:
      return colors.idle;
    case accrue::RunState::preflight:
    case accrue::RunState::starting:
    case accrue::RunState::running:
      return colors.running;
    case accrue::RunState::paused:
    case accrue::RunState::stopping:
      return colors.paused;
    case accrue::RunState::degraded:
    case accrue::RunState::restarting:
      return colors.degraded;
    case accrue::RunState::failed:
      return colors.failed;
    case accrue::RunState::finished:
      return colors.finished;
  }
  return colors.idle;
}

QColor mixed(const QColor& over, const QColor& under, double opacity) {
  const auto mix = [opacity](int a, int b) { return static_cast<int>(std::lround(a * opacity + b * (1.0 - opacity))); };
  return {mix(over.red(), under.red()), mix(over.green(), under.green()), mix(over.blue(), under.blue())};
}

double contrastRatio(const QColor& a, const QColor& b) {
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

}  // namespace accrue::ui
