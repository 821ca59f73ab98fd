// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QModelIndexList>
#include <QPointer>
#include <QWidget>

class QCheckBox;
class QLabel;
class QLineEdit;
class QStackedLayout;

namespace accrue::ui {

struct DockPanel;
class RunFilter;
class RunLibrary;
class RunNotebook;
class RunSeries;
class RunsTableView;

/// The runs table: the legend of the plots and the list of runs. Every run has an eye: open, it is drawn. One run has
/// the focus: all panels speak of it, and it is drawn even with a closed eye until the focus goes on. The selection is
/// what commands on several runs act upon.
class RunsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit RunsPanel(RunLibrary* library, QWidget* parent = nullptr);
  DockPanel dock();

  /// The drawn runs in the table's order, the focused one last (on top).
  QList<RunSeries*> shownRuns() const;
  /// The one that has the focus; nullptr if none has.
  RunSeries* currentRun() const;
  /// The one that a command is meant for: while the context menu is open that of its row, else the focused one.
  RunSeries* addressedRun() const;
  /// In the table's order.
  QList<RunSeries*> selectedRuns() const;
  /// Opens a run's eye and gives it the focus.
  void showAlso(RunSeries* run);
  /// Closes all other eyes; the last of these gets the focus.
  void showOnly(const QList<RunSeries*>& runs);
  void focusTable();
  /// While a run is live here no other can go on, be branched or be followed.
  void setBusy(bool busy) { busy_ = busy; }
  /// Edits the addressed run's name in its row.
  void editName();
  /// Commands on the selected runs, for the context menu; their keys act while the table has the focus.
  void setCommands(const QList<QAction*>& commands);
  void addBelow(QWidget* widget);
  RunNotebook* notebook() const { return notebook_; }
  /// The controls for the dock's title.
  QWidget* titleControl() const;

 Q_SIGNALS:
  void shownRunsChanged();
  void cloneRequested(accrue::ui::RunSeries* run);
  void resumeRequested(accrue::ui::RunSeries* run);
  void branchRequested(accrue::ui::RunSeries* run);
  void attachRequested(accrue::ui::RunSeries* run);
  void folderRequested(accrue::ui::RunSeries* run);
  /// A click on a row, or an eye that opens: whatever lies over the plots goes.
  void lookedAt();
  /// Double click or Enter: look at this run alone.
  void activated(accrue::ui::RunSeries* run);

 private:
  void connectSignals();
  void showEmptyState();
  void toggleEye(const QModelIndex& index);
  /// Draws the run that gets the focus, and no longer one that was drawn for its focus only.
  void moveFocus(RunSeries* from, RunSeries* to);
  void focusRun(RunSeries* run);
  void watch(int first, int last);
  /// Announces a change once, however many runs it concerns.
  void noteShown();
  void showMenu(const QPoint& at);
  void activate(const QModelIndex& index);
  void showAlone(RunSeries* run);
  RunSeries* runAt(const QModelIndex& index) const;
  /// Of the run's name; invalid if the run is not listed.
  QModelIndex indexOf(const RunSeries* run) const;

  RunLibrary* library_;
  RunFilter* sorted_;
  RunNotebook* notebook_;
  RunsTableView* view_;
  QWidget* controls_;
  QLineEdit* search_;
  QCheckBox* differing_;
  QLabel* empty_;
  QStackedLayout* stack_;
  QList<QAction*> commands_;
  QPointer<RunSeries> menu_run_;  ///< while its context menu is open
  bool changing_ = false;         ///< several runs at once
  bool busy_ = false;
};

}  // namespace accrue::ui
