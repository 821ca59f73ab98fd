// SPDX-License-Identifier: GPL-3.0-or-later
// Widgets with an explicit font keep it when the application's changes, so each of them is scaled separately. Later
// ones call textFont(), which starts from the application's.
#include "text_scale.h"

#include <QApplication>
#include <QWidget>
#include <algorithm>
#include <array>

#include "theme.h"

namespace accrue::ui {

namespace {

double now = 1.0;

QFont scaled(QFont font, double ratio) {
  if (font.pointSizeF() > 0.0)
    font.setPointSizeF(font.pointSizeF() * ratio);
  else
    font.setPixelSize(std::max(qRound(font.pixelSize() * ratio), 1));
  return font;
}

}  // namespace

double textScale() {
  return now;
}

int iconSide() {
  return qRound(space::icon * now);
}

void setTextScale(double factor) {
  const double wanted = std::clamp(factor, smallestText, largestText);
  const double ratio = wanted / now;
  if (qFuzzyCompare(ratio, 1.0)) return;
  now = wanted;
  QList<std::pair<QWidget*, QFont>> own;
  for (QWidget* widget : QApplication::allWidgets())
    if (widget->testAttribute(Qt::WA_SetFont)) own.append({widget, widget->font()});
  QApplication::setFont(scaled(QApplication::font(), ratio));
  // Until the event loop runs, widgets do not learn of the application's new font; windows pass it on to their
  // children.
  for (QWidget* window : QApplication::topLevelWidgets())
    if (!window->testAttribute(Qt::WA_SetFont)) window->setFont(QFont());
  for (const auto& [widget, font] : own) widget->setFont(scaled(font, ratio));
}

double nextTextScale(double factor, int direction) {
  constexpr std::array sizes = {smallestText, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, largestText};
  constexpr double near = 0.01;
  if (direction > 0) {
    const auto next = std::ranges::find_if(sizes, [factor](double size) { return size > factor + near; });
    return next == sizes.end() ? sizes.back() : *next;
  }
  const auto next = std::find_if(sizes.rbegin(), sizes.rend(), [factor](double size) { return size < factor - near; });
  return next == sizes.rend() ? sizes.front() : *next;
}

}  // namespace accrue::ui
