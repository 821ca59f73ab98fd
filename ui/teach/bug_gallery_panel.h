// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <map>
#include <optional>
#include <utility>

#include "accrue/run/fields/spec.h"

class QDockWidget;
class QLabel;
class QListWidget;
class QPushButton;

namespace accrue::ui {

struct DockPanel;
class RunControl;
class RunLibrary;
class RunSeries;
class SpecDocument;
class SpecFiles;

/// The bug gallery: fifteen bugs, each with its symptom, a run that shows it, its detector, and a fix with one click.
/// The run with the bug and the fixed one are drawn over each other.
class BugGalleryPanel : public QWidget {
  Q_OBJECT

 public:
  BugGalleryPanel(SpecDocument* document, RunControl* control, RunLibrary* library, SpecFiles* files,
                  QWidget* parent = nullptr);
  DockPanel dock();

  QDockWidget* dockWidget() const { return dock_; }
  void focusList();

 Q_SIGNALS:
  /// A bug is to be run: an open lesson closes.
  void chosen();
  /// A run with a bug is about to begin: the shown page makes room for it.
  void aboutToBegin();
  /// A bug that has been run was selected: these runs are to be shown.
  void runsWanted(const QList<accrue::ui::RunSeries*>& runs);

 private:
  QLabel* addText(const char* name, const QString& title);
  Bug current() const;
  void choose();
  void runWithBug();
  void fix();
  void keepFocus();
  void takeBegun(const RunSeries& run);
  /// Existing runs of the selected bug: the one with the bug, then those without it.
  QList<RunSeries*> runsOfCurrent() const;
  void showRun();

  SpecDocument* document_;
  RunControl* control_;
  RunLibrary* library_;
  SpecFiles* files_;
  QListWidget* list_;
  QLabel* symptom_;
  QLabel* detector_;
  QLabel* cure_;
  QLabel* lamp_;
  QPushButton* run_;
  QPushButton* fix_;
  QDockWidget* dock_ = nullptr;
  std::optional<std::pair<Bug, RunSpec>> fixed_;  ///< the bug that was fixed last, and what trains without it
  std::map<Bug, QStringList> runs_;               ///< folders: of the newest run with the bug, and of its fixes
};

}  // namespace accrue::ui
