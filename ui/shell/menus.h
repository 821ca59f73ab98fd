// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>

class QDockWidget;
class QMainWindow;
class QMenu;
class QToolBar;

namespace accrue::ui {

struct WindowActions;

/// Fills the menu bar; returns the (empty) menu of recent files.
QMenu* buildMenus(QMainWindow* window, const WindowActions& actions, const QList<QDockWidget*>& docks,
                  const QList<QToolBar*>& bars);
/// The run control tool bar.
QToolBar* buildRunBar(QMainWindow* window, const WindowActions& actions);

}  // namespace accrue::ui
