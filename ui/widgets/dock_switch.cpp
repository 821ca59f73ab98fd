// SPDX-License-Identifier: GPL-3.0-or-later
#include "dock_switch.h"

#include <QApplication>
#include <QDockWidget>

namespace accrue::ui {

void raiseDock(QDockWidget* dock) {
  dock->show();
  dock->raise();
}

void bringToFront(QDockWidget* dock) {
  raiseDock(dock);
  if (dock->isFloating()) dock->activateWindow();
  const QWidget* panel = dock->widget();
  for (QWidget* next = dock->widget()->nextInFocusChain(); next != panel; next = next->nextInFocusChain()) {
    const bool takes = (next->focusPolicy() & Qt::TabFocus) != 0 && next->isEnabled() && next->isVisibleTo(panel);
    if (!takes || !panel->isAncestorOf(next)) continue;
    next->setFocus(Qt::ShortcutFocusReason);
    return;
  }
  dock->widget()->setFocus(Qt::ShortcutFocusReason);
}

DockSwitch::DockSwitch(QDockWidget* dock) : QAction(dock->windowTitle(), dock), dock_(dock) {
  setObjectName(QStringLiteral("%1Action").arg(dock->objectName()));
  setCheckable(true);
  setStatusTip(tr("Show %1 and give it the focus; hide it if it has the focus").arg(dock->windowTitle()));
  setToolTip(statusTip());
  setChecked(dock->toggleViewAction()->isChecked());
  connect(dock->toggleViewAction(), &QAction::toggled, this, &QAction::setChecked);
  connect(this, &QAction::triggered, this, &DockSwitch::turn);
}

void DockSwitch::turn() {
  const QWidget* focus = QApplication::focusWidget();
  if (!dock_->isHidden() && focus && dock_->isAncestorOf(focus))
    dock_->hide();
  else
    bringToFront(dock_);
  setChecked(!dock_->isHidden());
}

}  // namespace accrue::ui
