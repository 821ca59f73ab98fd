// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>

class QMainWindow;
class QToolBar;

namespace accrue::ui {

class Actions;

/// Fills the menu bar from the table of commands. The menus of recent files and presets stay empty.
void buildMenus(QMainWindow* window, const Actions& actions, const QList<QToolBar*>& bars);
/// The run control tool bar.
QToolBar* buildRunBar(QMainWindow* window, const Actions& actions);

}  // namespace accrue::ui
