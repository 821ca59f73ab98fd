// SPDX-License-Identifier: GPL-3.0-or-later
#include "panel_scroll.h"

#include <QBoxLayout>
#include <QEvent>
#include <QScrollBar>
#include <algorithm>

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

/// In a stack each page scrolls by itself, and a hidden one needs no space.
int PanelScroll::neededHeight(int width) const {
  const auto* layout = qobject_cast<const QBoxLayout*>(widget()->layout());
  const int least = needed().height();
  return layout && layout->hasHeightForWidth() ? std::max(least, layout->minimumHeightForWidth(width)) : least;
}

/// A scroll bar takes space from the other direction.
void PanelScroll::fit() {
  const QSize least = needed();
  QSize room = maximumViewportSize();
  const bool sideways = least.width() > room.width();
  if (sideways) room.rheight() -= horizontalScrollBar()->sizeHint().height();
  if (neededHeight(std::max(room.width(), least.width())) > room.height()) {
    room.rwidth() -= verticalScrollBar()->sizeHint().width();
    if (!sideways && least.width() > room.width()) room.rheight() -= horizontalScrollBar()->sizeHint().height();
  }
  const int width = std::max(room.width(), least.width());
  widget()->resize(width, std::max(room.height(), neededHeight(width)));
}

}  // namespace accrue::ui
