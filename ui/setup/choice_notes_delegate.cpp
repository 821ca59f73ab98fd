// SPDX-License-Identifier: GPL-3.0-or-later
#include "choice_notes_delegate.h"

#include <QApplication>
#include <QPainter>
#include <algorithm>

#include "kit/theme.h"

namespace accrue::ui {

int ChoiceNotesDelegate::nameWidth(const QFontMetrics& metrics, const QModelIndex& index) {
  int width = 0;
  for (int row = 0; row < index.model()->rowCount(index.parent()); ++row) {
    const QModelIndex other = index.sibling(row, index.column());
    if (!other.data(noteRole).toString().isEmpty())
      width = std::max(width, metrics.horizontalAdvance(other.data(Qt::DisplayRole).toString()));
  }
  return width;
}

void ChoiceNotesDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem item = option;
  initStyleOption(&item, index);
  const QString name = item.text;
  item.text.clear();
  const QStyle* style = item.widget ? item.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &item, painter, item.widget);
  const bool selected = item.state & QStyle::State_Selected;
  const QRect text = item.rect.adjusted(space::inGroup, 0, -space::inGroup, 0);
  painter->save();
  painter->setFont(item.font);
  painter->setPen(item.palette.color(selected ? QPalette::HighlightedText : QPalette::Text));
  painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter, name);
  const QString note = index.data(noteRole).toString();
  if (!note.isEmpty()) {
    const int left = nameWidth(item.fontMetrics, index) + space::betweenGroups;
    if (!selected) painter->setPen(themeColors(item.palette).muted);
    painter->drawText(text.adjusted(left, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, note);
  }
  painter->restore();
}

QSize ChoiceNotesDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QString note = index.data(noteRole).toString();
  const QFontMetrics metrics(option.font);
  const int name = note.isEmpty() ? metrics.horizontalAdvance(index.data(Qt::DisplayRole).toString())
                                  : nameWidth(metrics, index) + space::betweenGroups + metrics.horizontalAdvance(note);
  return {name + 2 * space::inGroup, metrics.height() + space::inGroup};
}

}  // namespace accrue::ui
