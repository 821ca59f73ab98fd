// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_panel.h"

#include <QCheckBox>
#include <QDir>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QScopedValueRollback>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "dock_panel.h"
#include "kit/theme.h"
#include "run_filter.h"
#include "run_library.h"
#include "run_notebook.h"
#include "run_state_delegate.h"
#include "run_swatch_delegate.h"
#include "runs_columns.h"
#include "runs_table_view.h"

namespace accrue::ui {

RunsPanel::RunsPanel(RunLibrary* library, QWidget* parent)
    : QWidget(parent),
      library_(library),
      sorted_(new RunFilter(this)),
      notebook_(new RunNotebook(library->table(),
                                QFileInfo(library->runsDir()).dir().filePath(QStringLiteral("notes.json")), this)),
      view_(new RunsTableView(this)),
      controls_(new QWidget(this)),
      search_(new QLineEdit(controls_)),
      differing_(new QCheckBox(tr("Only differing columns"), controls_)),
      empty_(new QLabel(this)) {
  setObjectName(QStringLiteral("runsPanel"));
  sorted_->setSourceModel(library_->table());
  view_->setObjectName(QStringLiteral("runsTable"));
  view_->setAccessibleName(tr("Runs"));
  view_->setWhatsThis(tr("runs table"));
  view_->setModel(sorted_);
  view_->setRootIsDecorated(false);
  view_->setUniformRowHeights(true);
  view_->setAllColumnsShowFocus(true);
  view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  view_->setSortingEnabled(true);
  view_->header()->setSortIndicatorClearable(true);
  view_->sortByColumn(-1, Qt::AscendingOrder);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  view_->setItemDelegateForColumn(RunTableModel::nameColumn, new RunSwatchDelegate(view_));
  view_->setItemDelegateForColumn(RunTableModel::stateColumn, new RunStateDelegate(view_));
  new RunsColumns(view_, library_->table());
  view_->setTabKeyNavigation(false);
  view_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  differing_->setObjectName(QStringLiteral("onlyDifferingBox"));
  search_->setObjectName(QStringLiteral("runsFilter"));
  search_->setPlaceholderText(tr("Filter"));
  search_->setAccessibleName(tr("Filter the runs"));
  search_->setToolTip(tr("Words of a name, a state or a note; #tag; * for a star"));
  search_->setClearButtonEnabled(true);
  search_->setMaximumWidth(220);
  search_->addAction(themedIcon(QStringLiteral("search")), QLineEdit::LeadingPosition);
  auto* controls = new QHBoxLayout(controls_);
  controls->setContentsMargins(0, 0, 0, 0);
  controls->setSpacing(space::inGroup);
  controls->addStretch(1);
  controls->addWidget(search_, 1);
  controls->addWidget(differing_);
  empty_->setObjectName(QStringLiteral("noRuns"));
  empty_->setTextFormat(Qt::PlainText);
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
  connect(view_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now, const QModelIndex& before) { moveFocus(runAt(before), runAt(now)); });
  connect(view_, &RunsTableView::eyeToggled, this, &RunsPanel::toggleEye);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    sorted_->setKept(currentRun());
    sorted_->setText(text);
    showEmptyState();
  });
  connect(library_->table(), &RunTableModel::renamed, notebook_, &RunNotebook::rename);
  connect(library_->table(), &QAbstractItemModel::rowsInserted, this,
          [this](const QModelIndex&, int first, int last) { watch(first, last); });
  watch(0, library_->table()->rowCount() - 1);
  // A run that was hidden while focused is shown again.
  connect(view_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
    if (RunSeries* run = runAt(index); run && run->shown() == Shown::no) run->setShown(Shown::whileFocused);
    Q_EMIT lookedAt();
  });
  // Queued: columns must not change while the selection is being changed.
  connect(
      this, &RunsPanel::shownRunsChanged, this, [this] { library_->table()->setCompared(shownRuns()); },
      Qt::QueuedConnection);
  connect(sorted_, &QAbstractItemModel::columnsInserted, this, [this] {
    // A selected row is selected in all its columns, including later ones.
    view_->selectionModel()->select(view_->selectionModel()->selection(),
                                    QItemSelectionModel::Select | QItemSelectionModel::Rows);
  });
  connect(view_, &QTreeView::activated, this, &RunsPanel::activate);
  connect(view_, &QTreeView::customContextMenuRequested, this, &RunsPanel::showMenu);
  connect(sorted_, &QAbstractItemModel::rowsInserted, this, &RunsPanel::showEmptyState);
  connect(sorted_, &QAbstractItemModel::rowsRemoved, this, &RunsPanel::showEmptyState);
  connect(sorted_, &QAbstractItemModel::modelReset, this, &RunsPanel::showEmptyState);
}

void RunsPanel::watch(int first, int last) {
  for (int row = first; row <= last; ++row)
    connect(library_->table()->run(row), &RunSeries::shownChanged, this, &RunsPanel::noteShown, Qt::UniqueConnection);
}

void RunsPanel::noteShown() {
  if (!changing_) Q_EMIT shownRunsChanged();
}

void RunsPanel::toggleEye(const QModelIndex& index) {
  RunSeries* run = runAt(index);
  if (!run) return;
  run->setShown(run->shown() == Shown::yes ? Shown::no : Shown::yes);
  if (run->shown() == Shown::yes) Q_EMIT lookedAt();
}

void RunsPanel::moveFocus(RunSeries* from, RunSeries* to) {
  if (from == to) return;
  // Queued: rows must not be removed while the focus moves.
  QMetaObject::invokeMethod(
      this, [this] { sorted_->setKept(currentRun()); }, Qt::QueuedConnection);
  {
    const QScopedValueRollback guard(changing_, true);
    if (from && from->shown() == Shown::whileFocused) from->setShown(Shown::no);
    if (to && to->shown() == Shown::no) to->setShown(Shown::whileFocused);
  }
  noteShown();
}

void RunsPanel::showEmptyState() {
  const bool none = library_->table()->rowCount() == 0;
  empty_->setText(none ? tr("No runs yet. Press F5 to train this set-up; every run stays here for comparison.")
                       //: %1 what was typed into the filter
                       : tr("No run matches \u201c%1\u201d. The cross in the filter lists all runs again.")
                             .arg(search_->text().trimmed()));
  QWidget* const now = none || !sorted_->matches() ? static_cast<QWidget*>(empty_) : view_;
  const bool has_focus = stack_->currentWidget()->hasFocus();
  stack_->setCurrentWidget(now);
  if (has_focus) now->setFocus(Qt::OtherFocusReason);  // the last run was removed, or the first one was added
}

RunSeries* RunsPanel::runAt(const QModelIndex& index) const {
  return library_->table()->run(sorted_->mapToSource(index));
}

QList<RunSeries*> RunsPanel::shownRuns() const {
  QList<RunSeries*> runs = library_->table()->runs();
  runs.removeIf([](const RunSeries* run) { return run->shown() == Shown::no; });
  if (RunSeries* current = currentRun(); current && runs.removeOne(current)) runs.append(current);
  return runs;
}

QList<RunSeries*> RunsPanel::selectedRuns() const {
  QModelIndexList rows = view_->selectionModel()->selectedRows(RunTableModel::nameColumn);
  std::ranges::sort(rows, {}, &QModelIndex::row);
  QList<RunSeries*> runs;
  for (const QModelIndex& index : rows)
    if (RunSeries* run = runAt(index)) runs.append(run);
  return runs;
}

RunSeries* RunsPanel::addressedRun() const {
  return menu_run_ ? menu_run_.data() : currentRun();
}

QModelIndex RunsPanel::indexOf(const RunSeries* run) const {
  const int row = library_->table()->rowOf(run);
  return row < 0 ? QModelIndex() : sorted_->mapFromSource(library_->table()->index(row, RunTableModel::nameColumn));
}

RunSeries* RunsPanel::currentRun() const {
  return runAt(view_->selectionModel()->currentIndex());
}

void RunsPanel::focusRun(RunSeries* run) {
  if (library_->table()->rowOf(run) < 0) return;
  sorted_->setKept(run);
  const QModelIndex index = indexOf(run);
  view_->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  view_->scrollTo(index);
}

void RunsPanel::showAlso(RunSeries* run) {
  {
    const QScopedValueRollback guard(changing_, true);
    run->setShown(Shown::yes);
    focusRun(run);
  }
  noteShown();
}

void RunsPanel::showOnly(const QList<RunSeries*>& runs) {
  {
    const QScopedValueRollback guard(changing_, true);
    for (RunSeries* run : library_->table()->runs()) run->setShown(runs.contains(run) ? Shown::yes : Shown::no);
    if (runs.isEmpty())
      view_->selectionModel()->clear();
    else
      focusRun(runs.last());
  }
  noteShown();
}

QWidget* RunsPanel::titleControl() const {
  return controls_;
}

void RunsPanel::addBelow(QWidget* widget) {
  layout()->addWidget(widget);
}

void RunsPanel::editName() {
  if (const QModelIndex name = indexOf(addressedRun()); name.isValid()) view_->edit(name);
}

void RunsPanel::setCommands(const QList<QAction*>& commands) {
  commands_ = commands;
  view_->addActions(commands);
}

void RunsPanel::focusTable() {
  view_->setFocus(Qt::ShortcutFocusReason);
}

void RunsPanel::activate(const QModelIndex& index) {
  if (RunSeries* run = runAt(index)) showAlone(run);
}

void RunsPanel::showAlone(RunSeries* run) {
  showOnly({run});
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
  if (attach) attach->setEnabled(!busy_);
  const bool imported = library_->isImported(run->folder());
  QAction* resume = menu.addAction(tr("Resume"));
  resume->setEnabled(!busy_ && !run->isLive() && !elsewhere && !imported &&
                     run->outcome().outcome != QLatin1String("finished"));
  QAction* branch = menu.addAction(tr("Branch from this run with the current set-up"));
  branch->setEnabled(!busy_ && !run->isLive() && !imported);
  menu.addSeparator();
  menu.addActions(commands_);
  menu.addSeparator();
  QAction* folder = menu.addAction(tr("Open its folder"));
  const QScopedValueRollback addressed(menu_run_, QPointer<RunSeries>(run));
  const QAction* chosen = menu.exec(view_->viewport()->mapToGlobal(at));
  if (!chosen || !menu_run_) return;
  if (chosen == look) showAlone(run);  // the rows may have moved while the menu was open
  if (chosen == clone) Q_EMIT cloneRequested(run);
  if (chosen == attach) Q_EMIT attachRequested(run);
  if (chosen == resume) Q_EMIT resumeRequested(run);
  if (chosen == branch) Q_EMIT branchRequested(run);
  if (chosen == folder) Q_EMIT folderRequested(run);
}

DockPanel RunsPanel::dock() {
  return {.name = "runsDock",
          .title = tr("Runs"),
          .panel = this,
          .area = Qt::BottomDockWidgetArea,
          .size = 208,
          .control = titleControl(),
          .control_stretch = 1,
          .focus = [this] { focusTable(); }};
}

}  // namespace accrue::ui
