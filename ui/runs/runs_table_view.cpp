// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_table_view.h"

#include <QHeaderView>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <utility>

#include "kit/command_table.h"
#include "kit/theme.h"
#include "run_swatch_delegate.h"
#include "run_table_model.h"
#include "widgets/selection_tint.h"

namespace accrue::ui {

namespace {

constexpr int focus_bar = 3;

}  // namespace

RunsTableView::RunsTableView(QWidget* parent) : QTreeView(parent) {
  new SelectionTint(this);
}

void RunsTableView::drawRow(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QTreeView::drawRow(painter, option, index);
  if (index.row() != currentIndex().row() || !currentIndex().isValid()) return;
  painter->fillRect(QRect(0, option.rect.top(), focus_bar, option.rect.height()), themeColors(palette()).accent);
}

QModelIndex RunsTableView::eyeAt(const QPoint& at) const {
  const QModelIndex index = indexAt(at);
  if (index.column() != RunTableModel::nameColumn) return {};
  return RunSwatchDelegate::eyeRect(visualRect(index)).contains(at) ? index : QModelIndex();
}

void RunsTableView::mousePressEvent(QMouseEvent* event) {
  const QModelIndex eye = eyeAt(event->pos());
  eye_pressed_ = eye.isValid() && event->button() == Qt::LeftButton;
  if (event->button() == Qt::RightButton)
    selectFor(indexAt(event->pos()));
  else if (eye_pressed_)
    Q_EMIT eyeToggled(eye);
  else
    QTreeView::mousePressEvent(event);
}

void RunsTableView::mouseReleaseEvent(QMouseEvent* event) {
  // The view would take it for a click on the previously pressed cell.
  if (!std::exchange(eye_pressed_, false)) QTreeView::mouseReleaseEvent(event);
}

void RunsTableView::selectFor(const QModelIndex& menu_row) {
  if (menu_row.isValid() && !selectionModel()->isRowSelected(menu_row.row()))
    selectionModel()->select(menu_row, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

void RunsTableView::mouseDoubleClickEvent(QMouseEvent* event) {
  const QModelIndex eye = eyeAt(event->pos());
  eye_pressed_ = eye.isValid() && event->button() == Qt::LeftButton;
  if (eye_pressed_)
    Q_EMIT eyeToggled(eye);
  else
    QTreeView::mouseDoubleClickEvent(event);
}

void RunsTableView::keyPressEvent(QKeyEvent* event) {
  if (!isKeyOf(Command::toggleRun, *event) || !currentIndex().isValid()) return QTreeView::keyPressEvent(event);
  Q_EMIT eyeToggled(currentIndex().siblingAtColumn(RunTableModel::nameColumn));
}

QString RunsTableView::tipOf(const QModelIndex& cell) const {
  const QString text = cell.data().toString();
  const QString more = cell.data(Qt::ToolTipRole).toString();
  const bool cut = sizeHintForIndex(cell).width() > visualRect(cell).width();
  QStringList lines;
  if (cut && !more.startsWith(text)) lines << text;
  if (!more.isEmpty()) lines << more;
  for (int section = 0; cell.column() == RunTableModel::nameColumn && section < header()->count(); ++section) {
    const QString value = cell.siblingAtColumn(section).data().toString();
    if (!header()->isSectionHidden(section) || value.isEmpty()) continue;
    //: A column of the runs table that is hidden, and its value
    lines << tr("%1: %2").arg(model()->headerData(section, Qt::Horizontal).toString(), value);
  }
  return lines.join(QLatin1Char('\n'));
}

bool RunsTableView::viewportEvent(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QTreeView::viewportEvent(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QModelIndex cell = indexAt(help->pos());
  QToolTip::showText(help->globalPos(), cell.isValid() ? tipOf(cell) : QString(), viewport(), visualRect(cell));
  return true;
}

}  // namespace accrue::ui
