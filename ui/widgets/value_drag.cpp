// SPDX-License-Identifier: GPL-3.0-or-later
#include "value_drag.h"

#include <QAbstractSpinBox>
#include <QLabel>
#include <QMouseEvent>

namespace accrue::ui {

ValueDrag::ValueDrag(QLabel* name, QAbstractSpinBox* number) : QObject(name), number_(number) {
  name->setCursor(Qt::SizeHorCursor);
  name->installEventFilter(this);
}

void ValueDrag::install(QLabel* name, QAbstractSpinBox* number) {
  new ValueDrag(name, number);
}

bool ValueDrag::eventFilter(QObject*, QEvent* event) {
  const auto* mouse = dynamic_cast<QMouseEvent*>(event);
  if (!mouse) return false;
  const int x = mouse->globalPosition().toPoint().x();
  switch (event->type()) {
    case QEvent::MouseButtonPress:
      dragging_ = mouse->button() == Qt::LeftButton && number_->isEnabled() && !number_->isReadOnly();
      from_ = x;
      steps_ = 0;
      if (dragging_) number_->setFocus(Qt::MouseFocusReason);
      return dragging_;
    case QEvent::MouseMove:
      if (!dragging_) return false;
      for (const int wanted = (x - from_) / step_width; steps_ != wanted; steps_ += steps_ < wanted ? 1 : -1)
        number_->stepBy(steps_ < wanted ? 1 : -1);
      return true;
    case QEvent::MouseButtonRelease: {
      const bool was = dragging_;
      dragging_ = false;
      return was;
    }
    default:
      return false;
  }
}

}  // namespace accrue::ui
