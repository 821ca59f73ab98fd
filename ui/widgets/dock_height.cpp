// SPDX-License-Identifier: GPL-3.0-or-later
#include "dock_height.h"

#include <QDockWidget>
#include <QTabBar>

namespace accrue::ui {

int heightWithTabs(const QDockWidget& dock) {
  for (const QTabBar* tabs : dock.window()->findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly))
    if (tabs->isVisible() && tabs->x() == dock.x() && tabs->geometry().bottom() + 1 == dock.y())
      return tabs->height() + dock.height();
  return dock.height();
}

}  // namespace accrue::ui
