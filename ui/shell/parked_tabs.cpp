// SPDX-License-Identifier: GPL-3.0-or-later
#include "parked_tabs.h"

#include <QChildEvent>
#include <QTabBar>

namespace accrue::ui {

ParkedTabs::ParkedTabs(QMainWindow* window) : QObject(window) {
  window->installEventFilter(this);
}

bool ParkedTabs::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::ChildPolished) {
    if (auto* tabs = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) {
      tabs->installEventFilter(this);
      tabs->setElideMode(Qt::ElideNone);
    }
  } else if (event->type() == QEvent::Move) {
    if (auto* tabs = qobject_cast<QTabBar*>(object)) tabs->setFocusPolicy(tabs->x() < 0 ? Qt::NoFocus : Qt::TabFocus);
  }
  return false;
}

}  // namespace accrue::ui
