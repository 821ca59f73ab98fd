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
    case QEvent::MouseButtonDblClick:
      dragging_ = mouse->button() == Qt::LeftButton && mayStep();
      from_ = x;
      steps_ = 0;
      if (dragging_) number_->setFocus(Qt::MouseFocusReason);
      return dragging_;
    case QEvent::MouseMove:
      dragging_ = dragging_ && mayStep();
      if (dragging_) dragTo(x);
      return dragging_;
    case QEvent::MouseButtonRelease: {
      const bool was = dragging_;
      dragging_ = false;
      return was;
    }
    default:
      return false;
  }
}

bool ValueDrag::mayStep() const {
  return number_->isEnabled() && !number_->isReadOnly();
}

void ValueDrag::dragTo(int x) {
  const int wanted = (x - from_) / step_width;
  while (steps_ != wanted) {
    const int step = steps_ < wanted ? 1 : -1;
    const QString before = number_->text();
    number_->stepBy(step);
    if (number_->text() == before) {
      // At its limit further movement does not count, so that the way back counts from here.
      from_ = x - steps_ * step_width;
      return;
    }
    steps_ += step;
  }
}

}  // namespace accrue::ui
