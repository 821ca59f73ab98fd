// SPDX-License-Identifier: GPL-3.0-or-later
#include "wheel_guard.h"

#include <QEvent>
#include <QWidget>

namespace accrue::ui {

void WheelGuard::protect(QWidget* widget) {
  widget->setFocusPolicy(Qt::StrongFocus);
  widget->installEventFilter(new WheelGuard(widget));
}

bool WheelGuard::eventFilter(QObject*, QEvent* event) {
  if (event->type() != QEvent::Wheel) return false;
  event->ignore();
  return true;
}

}  // namespace accrue::ui
