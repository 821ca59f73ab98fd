// SPDX-License-Identifier: GPL-3.0-or-later
#include "theme.h"

#include <QApplication>
#include <QEvent>
#include <QFontDatabase>
#include <QFontMetricsF>

#include "studio_style.h"

namespace accrue::ui {

namespace {

QFont scaled(QFont font, TextSize size, QFont::Weight weight) {
  const double factor = size == TextSize::small ? 0.85 : size == TextSize::title ? 1.25 : 1.0;
  if (font.pointSizeF() > 0.0)
    font.setPointSizeF(font.pointSizeF() * factor);
  else
    font.setPixelSize(std::max(qRound(font.pixelSize() * factor), 1));
  font.setWeight(weight);
  return font;
}

bool digitsAreTabular(const QFont& font) {
  const QFontMetricsF metrics(font);
  const double width = metrics.horizontalAdvance(QLatin1Char('0'));
  for (char digit = '1'; digit <= '9'; ++digit)
    if (!qFuzzyCompare(metrics.horizontalAdvance(QLatin1Char(digit)), width)) return false;
  return true;
}

}  // namespace

QFont textFont(TextSize size, QFont::Weight weight) {
  return scaled(QGuiApplication::font(), size, weight);
}

QFont tabularFont(TextSize size) {
  const QFont font = textFont(size);
  if (digitsAreTabular(font)) return font;
  QFont fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  fixed.setPointSizeF(font.pointSizeF());
  return fixed;
}

QFont codeFont() {
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(QGuiApplication::font().pointSizeF());
  font.setStyleHint(QFont::Monospace);
  return font;
}

Theme::Theme(QApplication& application, QObject* parent) : QObject(parent), application_(application) {
  application_.setStyle(new StudioStyle);
  application_.installEventFilter(this);
  apply();
}

void Theme::setMode(ThemeMode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  apply();
}

void Theme::apply() {
  if (applying_) return;
  applying_ = true;
  QApplication::setPalette(QPalette());  // back to the system's palette
  const QPalette system = QGuiApplication::palette();
  const bool contrast = mode_ == ThemeMode::highContrast;
  const bool untouched = isHighContrast(system) && (contrast || mode_ == ThemeMode::system);
  dark_ = mode_ == ThemeMode::dark || (mode_ != ThemeMode::light && isDark(system));
  const ThemeColors& colors = contrast ? contrastColors(dark_) : dark_ ? darkColors() : lightColors();
  if (!untouched) QApplication::setPalette(widgetPalette(colors));
  applying_ = false;
  Q_EMIT changed();
}

bool Theme::eventFilter(QObject* object, QEvent* event) {
  // The platform announces a new system theme to every window; the first announcement is enough.
  if (event->type() == QEvent::ThemeChange && !applying_) apply();
  return QObject::eventFilter(object, event);
}

}  // namespace accrue::ui
