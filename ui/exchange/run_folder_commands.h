// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class RunSeries;
class RunsPanel;

/// The focused run outside the studio: its folder, and its command line for a terminal.
class RunFolderCommands : public QObject {
  Q_OBJECT

 public:
  RunFolderCommands(const Actions& actions, RunsPanel* runs, QObject* parent);

 private:
  void openFolder(const RunSeries* run);
  void copyCommand();

  RunsPanel* runs_;
};

}  // namespace accrue::ui
