// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_state_delegate.h"

#include "kit/theme.h"
#include "run_table_model.h"

namespace accrue::ui {

void RunStateDelegate::initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const {
  QStyledItemDelegate::initStyleOption(option, index);
  option->features |= QStyleOptionViewItem::HasDecoration;
  const auto state = static_cast<RunState>(index.data(RunTableModel::stateRole).toInt());
  const QString name = index.data(RunTableModel::iconNameRole).toString();
  // A stopped run ended without an error but before its planned end: it has a separate icon, without the green.
  const QIcon icon = name == stateIconName(state) ? stateIcon(state) : themedIcon(name);
  const QSize size(space::icon, space::icon);
  const QPixmap drawn = icon.pixmap(size, option->widget ? option->widget->devicePixelRatioF() : 1.0);
  // The selection is a tint, on which the icon keeps its colour.
  option->icon = QIcon();
  for (const QIcon::Mode mode : {QIcon::Normal, QIcon::Selected}) option->icon.addPixmap(drawn, mode);
  option->decorationSize = QSize(space::icon, space::icon);
}

QSize RunStateDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QSize size = QStyledItemDelegate::sizeHint(option, index);
  return {size.width(), std::max(size.height(), space::page)};
}

}  // namespace accrue::ui
