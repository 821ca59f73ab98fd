// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_table_view.h"

#include <QEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScopedValueRollback>

#include "models/run_table_model.h"
#include "run_swatch_delegate.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr double selection_tint = 0.12;
constexpr int focus_bar = 3;

}  // namespace

RunsTableView::RunsTableView(QWidget* parent) : QTreeView(parent) {
  tintSelection();
}

void RunsTableView::tintSelection() {
  const QScopedValueRollback guard(tinting_, true);
  const ThemeColors colors = themeColors(palette());
  QPalette tinted = palette();
  tinted.setColor(QPalette::Highlight, mixed(colors.accent, colors.surface, selection_tint));
  tinted.setColor(QPalette::HighlightedText, colors.text);
  setPalette(tinted);
}

void RunsTableView::changeEvent(QEvent* event) {
  QTreeView::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && !tinting_) tintSelection();
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
  if (eye.isValid() && event->button() == Qt::LeftButton)
    Q_EMIT eyeToggled(eye);
  else
    QTreeView::mousePressEvent(event);
}

void RunsTableView::mouseDoubleClickEvent(QMouseEvent* event) {
  const QModelIndex eye = eyeAt(event->pos());
  if (eye.isValid() && event->button() == Qt::LeftButton)
    Q_EMIT eyeToggled(eye);
  else
    QTreeView::mouseDoubleClickEvent(event);
}

void RunsTableView::keyPressEvent(QKeyEvent* event) {
  if (event->key() != Qt::Key_Space || event->modifiers() != Qt::NoModifier || !currentIndex().isValid()) {
    QTreeView::keyPressEvent(event);
    return;
  }
  Q_EMIT eyeToggled(currentIndex().siblingAtColumn(RunTableModel::nameColumn));
}

}  // namespace accrue::ui
