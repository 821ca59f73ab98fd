// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QModelIndexList>
#include <QWidget>

class QCheckBox;
class QLabel;
class QSortFilterProxyModel;
class QStackedLayout;
class QTreeView;

namespace accrue::ui {

class RunLibrary;
class RunSeries;

/// The runs table: the legend of the plots and the list of runs. The selected runs are the ones shown.
class RunsPanel : public QWidget {
  Q_OBJECT

 public:
  explicit RunsPanel(RunLibrary* library, QWidget* parent = nullptr);

  /// The selected runs in the table's order, the current one last (on top).
  QList<RunSeries*> shownRuns() const;
  RunSeries* currentRun() const;
  /// Shows a run in addition to those shown, and makes it the current one.
  void showAlso(RunSeries* run);
  /// Shows only these; the last becomes the current one.
  void showOnly(const QList<RunSeries*>& runs);
  void focusTable();
  /// The controls for the dock's title.
  QWidget* titleControl() const;

 Q_SIGNALS:
  void shownRunsChanged();
  void cloneRequested(accrue::ui::RunSeries* run);
  void resumeRequested(accrue::ui::RunSeries* run);
  void branchRequested(accrue::ui::RunSeries* run);
  void attachRequested(accrue::ui::RunSeries* run);
  void folderRequested(accrue::ui::RunSeries* run);
  /// Double click or Enter: look at this run alone.
  void activated(accrue::ui::RunSeries* run);

 private:
  void connectSignals();
  void showEmptyState();
  /// The first cell of each selected row, from the top. By the first column, which is always there: while an optional
  /// column goes, no row is selected in all columns.
  QModelIndexList selectedRows() const;
  /// Extends the selection of rows to columns added since.
  void selectWholeRows();
  void showMenu(const QPoint& at);
  void activate(const QModelIndex& index);
  RunSeries* runAt(const QModelIndex& index) const;

  RunLibrary* library_;
  QSortFilterProxyModel* sorted_;
  QTreeView* view_;
  QCheckBox* differing_;
  QLabel* empty_;
  QStackedLayout* stack_;
};

}  // namespace accrue::ui
