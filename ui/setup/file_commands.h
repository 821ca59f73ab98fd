// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>
#include <QObject>

namespace accrue::ui {

class Actions;
class MessageBar;
class SpecFiles;

/// The File menu's commands on specs and run folders, the menus of recent files and presets, and what is said of files.
class FileCommands : public QObject {
  Q_OBJECT

 public:
  /// The menu bar has been filled.
  FileCommands(const Actions& actions, SpecFiles* files, MessageBar* bar, QMainWindow* window);
};

}  // namespace accrue::ui
