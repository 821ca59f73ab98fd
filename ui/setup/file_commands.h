// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <QObject>

namespace accrue::ui {

class Actions;
class MessageBar;
class SpecFiles;

/// Connects the File menu's commands on specs and run folders, the menus of recent files and presets, and the messages
/// about files. The menu bar has been filled.
void connectFileCommands(const Actions& actions, SpecFiles* files, MessageBar* bar, QMainWindow* window);

}  // namespace accrue::ui
