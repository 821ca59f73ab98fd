// SPDX-License-Identifier: GPL-3.0-or-later
#include "events_panel.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "dock_panel.h"
#include "event_log_model.h"
#include "kit/number_text.h"
#include "kit/theme.h"
#include "series/run_series.h"

namespace accrue::ui {

EventsPanel::EventsPanel(EventLogModel* log, QWidget* parent)
    : QWidget(parent),
      filter_(new EventLogFilter(this)),
      search_(new QLineEdit(this)),
      older_(new QLabel(this)),
      view_(new QTreeView(this)) {
  setObjectName(QStringLiteral("eventsPanel"));
  filter_->setSourceModel(log);
  // One line per micro-step would bury all other events; the filter can show them.
  filter_->hideKinds({QStringLiteral("micro_steps"), QStringLiteral("sync")});
  search_->setObjectName(QStringLiteral("eventsFilter"));
  search_->setPlaceholderText(tr("Filter"));
  search_->setAccessibleName(tr("Filter the events"));
  search_->setClearButtonEnabled(true);
  search_->setMaximumWidth(320);
  search_->addAction(themedIcon(QStringLiteral("search")), QLineEdit::LeadingPosition);
  view_->setObjectName(QStringLiteral("eventsView"));
  view_->setAccessibleName(tr("Events"));
  view_->setModel(filter_);
  view_->setRootIsDecorated(false);
  view_->setUniformRowHeights(true);
  view_->setAllColumnsShowFocus(true);
  view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setFont(textFont(TextSize::small));
  view_->setTabKeyNavigation(false);
  view_->header()->setStretchLastSection(true);
  view_->setColumnWidth(EventLogModel::timeColumn, 88);
  view_->setColumnWidth(EventLogModel::rankColumn, 72);
  view_->setColumnWidth(EventLogModel::kindColumn, 120);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  older_->setObjectName(QStringLiteral("eventsOlder"));
  older_->setFont(textFont(TextSize::small));
  older_->setForegroundRole(QPalette::PlaceholderText);
  older_->setContentsMargins(space::inGroup, space::base, space::inGroup, space::base);
  older_->hide();
  layout->addWidget(older_);
  layout->addWidget(view_, 1);
  auto* copy = new QAction(tr("Copy"), view_);
  copy->setObjectName(QStringLiteral("copyEventsAction"));
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetShortcut);
  view_->addAction(copy);
  view_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(copy, &QAction::triggered, this, &EventsPanel::copySelected);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) {
    filter_->hideKinds(text.isEmpty() ? QSet<QString>{QStringLiteral("micro_steps"), QStringLiteral("sync")}
                                      : QSet<QString>{});
    filter_->setText(text);
    showOlder();
  });
  connect(filter_, &QAbstractItemModel::rowsInserted, this, &EventsPanel::followEnd);
  connect(log, &QAbstractItemModel::rowsInserted, this, &EventsPanel::showOlder);
  connect(log, &QAbstractItemModel::modelReset, this, &EventsPanel::showOlder);
  connect(view_->verticalScrollBar(), &QScrollBar::valueChanged, this, &EventsPanel::noteScroll);
  connect(view_, &QTreeView::activated, this, [this](const QModelIndex& index) {
    const qint64 update = index.data(EventLogModel::updateRole).toLongLong();
    if (update > 0) Q_EMIT updateRequested(update);
  });
}

QWidget* EventsPanel::titleControl() const {
  return search_;
}

void EventsPanel::setRun(const RunSeries* run) {
  filter_->setRun(run ? run->id() : QString());
  run_ = run;
  at_end_ = true;
  view_->scrollToBottom();
  showOlder();
}

void EventsPanel::showOlder() {
  const auto* log = qobject_cast<const EventLogModel*>(filter_->sourceModel());
  const QString id = run_ ? run_->id() : QString();
  std::int64_t older = log->dropped(id, false);
  if (!search_->text().isEmpty()) older += log->dropped(id, true);
  older_->setVisible(older > 0);
  older_->setText(older == 1 ? tr("1 older event is only in the run's folder")
                             : tr("%1 older events are only in the run's folder").arg(groupedNumber(older)));
}

void EventsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  followEnd();  // rows arrived while the panel was hidden
}

void EventsPanel::followEnd() {
  if (at_end_ && isVisible()) view_->scrollToBottom();
}

void EventsPanel::noteScroll() {
  const QScrollBar* bar = view_->verticalScrollBar();
  at_end_ = bar->value() >= bar->maximum();
}

void EventsPanel::copySelected() {
  const auto* log = qobject_cast<const EventLogModel*>(filter_->sourceModel());
  QModelIndexList rows = view_->selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end());
  QStringList lines;
  for (const QModelIndex& row : rows) lines.append(log->textOf(filter_->mapToSource(row).row()));
  QGuiApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

DockPanel EventsPanel::dock() {
  return {.name = "eventsDock",
          .title = tr("Events"),
          .panel = this,
          .area = Qt::BottomDockWidgetArea,
          .behind = "runsDock",
          .control = titleControl(),
          .control_stretch = 1,
          .focus = [this] { view_->setFocus(Qt::ShortcutFocusReason); },
          .set_run = [this](RunSeries* run) { setRun(run); },
          .speaks_of = [this] { return run_.data(); }};
}

}  // namespace accrue::ui
