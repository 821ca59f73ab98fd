// SPDX-License-Identifier: GPL-3.0-or-later
#include "panel_scroll.h"

#include <QEvent>
#include <QScrollBar>

namespace accrue::ui {

PanelScroll::PanelScroll(QWidget* panel, QWidget* parent) : QScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setFocusProxy(panel);
  setWidget(panel);
}

QSize PanelScroll::needed() const {
  return widget()->minimumSizeHint().expandedTo(widget()->minimumSize());
}

QSize PanelScroll::sizeHint() const {
  return widget()->sizeHint();
}

QSize PanelScroll::minimumSizeHint() const {
  return needed();
}

void PanelScroll::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  fit();
}

bool PanelScroll::eventFilter(QObject* object, QEvent* event) {
  const bool done = QScrollArea::eventFilter(object, event);
  if (object == widget() && event->type() == QEvent::LayoutRequest) {
    updateGeometry();
    fit();
  }
  return done;
}

/// A scroll bar takes room from the other direction.
void PanelScroll::fit() {
  const QSize least = needed();
  QSize room = maximumViewportSize();
  const bool sideways = least.width() > room.width();
  if (sideways) room.rheight() -= horizontalScrollBar()->sizeHint().height();
  if (least.height() > room.height()) {
    room.rwidth() -= verticalScrollBar()->sizeHint().width();
    if (!sideways && least.width() > room.width()) room.rheight() -= horizontalScrollBar()->sizeHint().height();
  }
  widget()->resize(room.expandedTo(least));
}

}  // namespace accrue::ui
