// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_swatch_delegate.h"

#include <QApplication>
#include <QPainter>

#include "models/run_table_model.h"
#include "plots/series_swatch.h"
#include "style/theme.h"

namespace accrue::ui {

namespace {

constexpr int swatch_width = 28;

}  // namespace

void RunSwatchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem item = option;
  initStyleOption(&item, index);
  const QStyle* style = item.widget ? item.widget->style() : QApplication::style();
  const QString text = item.text;
  item.text.clear();
  style->drawControl(QStyle::CE_ItemViewItem, &item, painter, item.widget);
  const int color = index.data(RunTableModel::colorIndexRole).toInt();
  const QRect area = option.rect.adjusted(space::base, 0, -space::base, 0);
  painter->save();
  if (color >= 0 && item.state.testFlag(QStyle::State_Selected)) {
    // A series may be invisible on the selection's colour, so it is drawn on a patch of the surface colour.
    const QRect plate(area.left(), area.center().y() - 6, swatch_width + 4, 13);
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(option.palette.base());
    painter->drawRoundedRect(plate, 3, 3);
    paintSwatch(*painter, QRectF(plate).adjusted(2, 1, -2, -1), color, themeColors(option.palette));
  }
  const bool selected = item.state.testFlag(QStyle::State_Selected);
  painter->setPen(option.palette.color(selected ? QPalette::HighlightedText : QPalette::Text));
  painter->setFont(item.font);
  const QRect label = area.adjusted(swatch_width + space::inGroup, 0, 0, 0);
  painter->drawText(label, Qt::AlignLeft | Qt::AlignVCenter,
                    item.fontMetrics.elidedText(text, Qt::ElideRight, label.width()));
  painter->restore();
}

QSize RunSwatchDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QSize base = QStyledItemDelegate::sizeHint(option, index);
  return {base.width() + swatch_width + space::inGroup + space::base, base.height()};
}

}  // namespace accrue::ui
