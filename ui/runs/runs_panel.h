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

/// The runs table: legend of the plots and list of runs. Every run has an eye; if it is open, the run is drawn. One run
/// has the focus: all panels show it, and it is drawn even with a closed eye until it loses the focus. Commands on
/// several runs act on the selection.
class RunsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit RunsPanel(RunLibrary* library, QWidget* parent = nullptr);
  DockPanel dock();

  /// Returns the drawn runs in table order, the focused one last (on top).
  QList<RunSeries*> shownRuns() const;
  /// Returns the focused run; nullptr if there is none.
  RunSeries* currentRun() const;
  /// Returns the run for a command: while the context menu is open that of its row, else the focused one.
  RunSeries* addressedRun() const;
  /// In table order.
  QList<RunSeries*> selectedRuns() const;
  /// Opens a run's eye and gives it the focus.
  void showAlso(RunSeries* run);
  /// Closes all other eyes; the last of `runs` gets the focus.
  void showOnly(const QList<RunSeries*>& runs);
  void focusTable();
  /// While a run is live here, no other can be resumed, branched or followed.
  void setBusy(bool busy) { busy_ = busy; }
  /// Edits the addressed run's name in its row.
  void editName();
  /// Sets commands on the selected runs for the context menu; their keys act while the table has the focus.
  void setCommands(const QList<QAction*>& commands);
  void addBelow(QWidget* widget);
  RunNotebook* notebook() const { return notebook_; }
  /// Controls for the dock's title.
  QWidget* titleControl() const;

 Q_SIGNALS:
  void shownRunsChanged();
  void cloneRequested(accrue::ui::RunSeries* run);
  void resumeRequested(accrue::ui::RunSeries* run);
  void branchRequested(accrue::ui::RunSeries* run);
  void attachRequested(accrue::ui::RunSeries* run);
  void folderRequested(accrue::ui::RunSeries* run);
  /// A row was clicked, or an eye was opened: overlays of the plots should close.
  void lookedAt();
  /// Double click or Enter: show this run alone.
  void activated(accrue::ui::RunSeries* run);

 private:
  void connectSignals();
  void showEmptyState();
  void toggleEye(const QModelIndex& index);
  /// Draws the newly focused run, and stops drawing one that was drawn only for its focus.
  void moveFocus(RunSeries* from, RunSeries* to);
  void focusRun(RunSeries* run);
  void watch(int first, int last);
  /// Announces a change once, for any number of runs.
  void noteShown();
  void showMenu(const QPoint& at);
  void activate(const QModelIndex& index);
  void showAlone(RunSeries* run);
  RunSeries* runAt(const QModelIndex& index) const;
  /// Index of the run's name; invalid if the run is not listed.
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
  QPointer<RunSeries> menu_run_;  ///< set while its context menu is open
  bool changing_ = false;         ///< several runs are being changed at once
  bool busy_ = false;
};

}  // namespace accrue::ui
