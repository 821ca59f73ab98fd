// SPDX-License-Identifier: GPL-3.0-or-later
#include "wheel_guard.h"

#include <QEvent>
#include <QWidget>

namespace accrue::ui {

void WheelGuard::protect(QWidget* widget) {
  widget->setFocusPolicy(Qt::StrongFocus);
  widget->installEventFilter(new WheelGuard(widget));
}

bool WheelGuard::eventFilter(QObject* object, QEvent* event) {
  if (event->type() != QEvent::Wheel) return false;
  const auto* widget = qobject_cast<QWidget*>(object);
  if (!widget || widget->hasFocus()) return false;
  event->ignore();
  return true;
}

}  // namespace accrue::ui
