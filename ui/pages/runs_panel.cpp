// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_panel.h"

#include <QCheckBox>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QSortFilterProxyModel>
#include <QStackedLayout>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "models/run_library.h"
#include "run_state_delegate.h"
#include "run_swatch_delegate.h"
#include "style/theme.h"

namespace accrue::ui {

RunsPanel::RunsPanel(RunLibrary* library, QWidget* parent)
    : QWidget(parent),
      library_(library),
      sorted_(new QSortFilterProxyModel(this)),
      view_(new QTreeView(this)),
      differing_(new QCheckBox(tr("Only differing columns"), this)),
      empty_(new QLabel(tr("No runs yet. Press F5 to train this set-up; every run stays here for comparison."), this)) {
  setObjectName(QStringLiteral("runsPanel"));
  sorted_->setSourceModel(library_->table());
  sorted_->setSortRole(RunTableModel::sortRole);
  view_->setObjectName(QStringLiteral("runsTable"));
  view_->setAccessibleName(tr("Runs"));
  view_->setModel(sorted_);
  view_->setRootIsDecorated(false);
  view_->setUniformRowHeights(true);
  view_->setAllColumnsShowFocus(true);
  view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  view_->setSortingEnabled(true);
  view_->sortByColumn(-1, Qt::AscendingOrder);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  view_->setItemDelegateForColumn(RunTableModel::nameColumn, new RunSwatchDelegate(view_));
  view_->header()->setStretchLastSection(true);
  view_->header()->setDefaultSectionSize(84);
  view_->setColumnWidth(RunTableModel::nameColumn, 232);
  for (const int narrow : {RunTableModel::stepsColumn, RunTableModel::microBatchColumn, RunTableModel::ranksColumn})
    view_->setColumnWidth(narrow, 60);
  view_->setItemDelegateForColumn(RunTableModel::stateColumn, new RunStateDelegate(view_));
  view_->setColumnWidth(RunTableModel::stateColumn, 112);
  view_->setTabKeyNavigation(false);
  differing_->setObjectName(QStringLiteral("onlyDifferingBox"));
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  empty_->setForegroundRole(QPalette::PlaceholderText);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* body = new QWidget(this);
  stack_ = new QStackedLayout(body);
  stack_->addWidget(empty_);
  stack_->addWidget(view_);
  layout->addWidget(body, 1);
  connectSignals();
  showEmptyState();
}

void RunsPanel::connectSignals() {
  connect(differing_, &QCheckBox::toggled, library_->table(), &RunTableModel::setOnlyDiffering);
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RunsPanel::shownRunsChanged);
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &RunsPanel::shownRunsChanged);
  // Queued: columns must not change while the selection is being changed.
  connect(
      this, &RunsPanel::shownRunsChanged, this, [this] { library_->table()->setCompared(shownRuns()); },
      Qt::QueuedConnection);
  connect(sorted_, &QAbstractItemModel::columnsInserted, this, &RunsPanel::selectWholeRows);
  connect(view_, &QTreeView::activated, this, &RunsPanel::activate);
  connect(view_, &QTreeView::customContextMenuRequested, this, &RunsPanel::showMenu);
  connect(sorted_, &QAbstractItemModel::rowsInserted, this, &RunsPanel::showEmptyState);
  connect(sorted_, &QAbstractItemModel::rowsRemoved, this, &RunsPanel::showEmptyState);
  connect(sorted_, &QAbstractItemModel::modelReset, this, &RunsPanel::showEmptyState);
}

void RunsPanel::selectWholeRows() {
  QItemSelection rows;
  for (const QModelIndex& row : selectedRows()) rows.select(row, row.siblingAtColumn(sorted_->columnCount() - 1));
  view_->selectionModel()->select(rows, QItemSelectionModel::Select);
}

void RunsPanel::showEmptyState() {
  stack_->setCurrentWidget(sorted_->rowCount() == 0 ? static_cast<QWidget*>(empty_) : view_);
}

RunSeries* RunsPanel::runAt(const QModelIndex& index) const {
  return library_->table()->run(sorted_->mapToSource(index));
}

QModelIndexList RunsPanel::selectedRows() const {
  QModelIndexList rows;
  for (const QModelIndex& cell : view_->selectionModel()->selectedIndexes())
    if (cell.column() == 0) rows.append(cell);
  std::ranges::sort(rows, {}, &QModelIndex::row);
  return rows;
}

QList<RunSeries*> RunsPanel::shownRuns() const {
  QList<RunSeries*> runs;
  for (const QModelIndex& index : selectedRows())
    if (RunSeries* run = runAt(index)) runs.append(run);
  if (RunSeries* current = currentRun(); current && runs.removeOne(current)) runs.append(current);
  return runs;
}

RunSeries* RunsPanel::currentRun() const {
  const QModelIndexList rows = selectedRows();
  const QModelIndex current = view_->selectionModel()->currentIndex().siblingAtColumn(0);
  if (rows.contains(current)) return runAt(current);
  return rows.isEmpty() ? nullptr : runAt(rows.last());
}

void RunsPanel::showAlso(RunSeries* run) {
  const int row = library_->table()->rowOf(run);
  if (row < 0) return;
  const QModelIndex index = sorted_->mapFromSource(library_->table()->index(row, RunTableModel::nameColumn));
  view_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::Select | QItemSelectionModel::Rows);
  view_->scrollTo(index);
}

void RunsPanel::showOnly(const QList<RunSeries*>& runs) {
  view_->selectionModel()->clear();
  for (RunSeries* run : runs) showAlso(run);
}

QWidget* RunsPanel::titleControl() const {
  return differing_;
}

void RunsPanel::focusTable() {
  view_->setFocus(Qt::ShortcutFocusReason);
}

void RunsPanel::activate(const QModelIndex& index) {
  RunSeries* run = runAt(index);
  if (!run) return;
  view_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  Q_EMIT activated(run);
}

void RunsPanel::showMenu(const QPoint& at) {
  RunSeries* run = runAt(view_->indexAt(at));
  if (!run) return;
  QMenu menu(this);
  QAction* look = menu.addAction(tr("Show only this run"));
  QAction* clone = menu.addAction(tr("Edit a copy of its spec"));
  clone->setEnabled(run->spec().has_value());
  menu.addSeparator();
  const bool elsewhere = library_->liveElsewhere().contains(run->folder());
  QAction* attach = elsewhere ? menu.addAction(tr("Attach")) : nullptr;
  QAction* resume = menu.addAction(tr("Resume"));
  resume->setEnabled(!run->isLive() && !elsewhere && run->outcome().outcome != QLatin1String("finished"));
  QAction* branch = menu.addAction(tr("Branch from this run with the current set-up"));
  branch->setEnabled(!run->isLive());
  menu.addSeparator();
  QAction* folder = menu.addAction(tr("Open its folder"));
  const QAction* chosen = menu.exec(view_->viewport()->mapToGlobal(at));
  if (!chosen) return;
  if (chosen == look) activate(view_->indexAt(at));
  if (chosen == clone) Q_EMIT cloneRequested(run);
  if (chosen == attach) Q_EMIT attachRequested(run);
  if (chosen == resume) Q_EMIT resumeRequested(run);
  if (chosen == branch) Q_EMIT branchRequested(run);
  if (chosen == folder) Q_EMIT folderRequested(run);
}

}  // namespace accrue::ui
