// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_swatch_delegate.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QPainter>

#include "canvas/series_swatch.h"
#include "kit/theme.h"
#include "run_table_model.h"

namespace accrue::ui {

namespace {

static_assert(RunSeries::colors == seriesColorCount);
constexpr int swatch_width = 28;
constexpr int eye_width = space::inGroup + space::icon + space::base;
/// An eye that is temporarily open, and a closed one.
constexpr double passing_eye = 0.45;
constexpr double closed_eye = 0.6;

void paintEye(QPainter& painter, const QRect& area, Qt::CheckState shown) {
  const QRect icon(area.left() + space::inGroup, area.center().y() - space::icon / 2 + 1, space::icon, space::icon);
  painter.setOpacity(shown == Qt::Checked ? 1.0 : shown == Qt::PartiallyChecked ? passing_eye : closed_eye);
  themedIcon(shown == Qt::Unchecked ? QStringLiteral("eye-off") : QStringLiteral("eye")).paint(&painter, icon);
  painter.setOpacity(1.0);
}

/// Colours of a hidden run's swatch: dash and marker in grey.
ThemeColors greyed(ThemeColors colors) {
  colors.series.fill(mixed(colors.muted, colors.surface, 0.6));
  return colors;
}

constexpr int mark_icon = 12;

int marksWidth(const QStringList& marks) {
  const int text = QFontMetrics(textFont(TextSize::small)).horizontalAdvance(marks.join(QStringLiteral(", ")));
  return marks.isEmpty() ? 0 : mark_icon + space::base + text + space::inGroup;
}

/// Returns the width that the marks take at the right.
int paintMarks(QPainter& painter, const QRect& area, const QStringList& marks, const QStyleOptionViewItem& item) {
  const int all = marksWidth(marks);
  if (all == 0 || all > area.width() / 2 + space::page) return 0;
  painter.setFont(textFont(TextSize::small));
  const QRect icon(area.right() - all + 1, area.center().y() - 5, mark_icon, mark_icon);
  stateIcon(RunState::degraded).paint(&painter, icon);
  painter.setPen(themeColors(item.palette).muted);
  painter.drawText(QRect(icon.right() + space::base, area.top(), all, area.height()), Qt::AlignLeft | Qt::AlignVCenter,
                   marks.join(QStringLiteral(", ")));
  return all;
}

}  // namespace

QRect RunSwatchDelegate::eyeRect(const QRect& cell) {
  return {cell.left(), cell.top(), eye_width, cell.height()};
}

void RunSwatchDelegate::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                                             const QModelIndex&) const {
  editor->setGeometry(option.rect.adjusted(eye_width + swatch_width + space::base, 0, 0, 0));
}

void RunSwatchDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem item = option;
  initStyleOption(&item, index);
  const QStyle* style = item.widget ? item.widget->style() : QApplication::style();
  const QString text = item.text;
  item.text.clear();
  item.features &= ~QStyleOptionViewItem::HasCheckIndicator;
  style->drawControl(QStyle::CE_ItemViewItem, &item, painter, item.widget);
  painter->save();
  const auto shown = static_cast<Qt::CheckState>(index.data(Qt::CheckStateRole).toInt());
  paintEye(*painter, eyeRect(option.rect), shown);
  const int color = index.data(RunTableModel::colorIndexRole).toInt();
  const ThemeColors colors = themeColors(option.palette);
  const QRect area = option.rect.adjusted(eye_width, 0, -space::base, 0);
  const QRectF swatch(area.left(), area.center().y() - 5, swatch_width, 11);
  if (color >= 0) paintSwatch(*painter, swatch, color, shown == Qt::Unchecked ? greyed(colors) : colors);
  QRect label = area.adjusted(swatch_width + space::inGroup, 0, 0, 0);
  label.setRight(label.right() -
                 paintMarks(*painter, label, index.data(RunTableModel::marksRole).toStringList(), item));
  const auto* view = qobject_cast<const QAbstractItemView*>(option.widget);
  QFont font = item.font;
  if (view && view->currentIndex().isValid() && view->currentIndex().row() == index.row())
    font.setWeight(QFont::DemiBold);
  painter->setPen(shown == Qt::Unchecked ? colors.muted : colors.text);
  painter->setFont(font);
  const QFontMetrics metrics(font);
  painter->drawText(label, Qt::AlignLeft | Qt::AlignVCenter, elidedRunName(text, metrics, label.width()));
  const int left = label.width() - metrics.horizontalAdvance(text) - space::inGroup;
  if (const QString tags = index.data(RunTableModel::tagsRole).toStringList().join(QLatin1Char(' '));
      !tags.isEmpty() && left > space::page) {
    painter->setPen(colors.muted);
    painter->setFont(textFont(TextSize::small));
    painter->drawText(label, Qt::AlignRight | Qt::AlignVCenter,
                      painter->fontMetrics().elidedText(tags, Qt::ElideRight, left));
  }
  painter->restore();
}

QSize RunSwatchDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QStyleOptionViewItem focused = option;  // its name is the widest
  focused.font.setWeight(QFont::DemiBold);
  focused.fontMetrics = QFontMetrics(focused.font);
  const QSize base = QStyledItemDelegate::sizeHint(focused, index);
  const int marks = marksWidth(index.data(RunTableModel::marksRole).toStringList());
  return {base.width() + eye_width + swatch_width + space::inGroup + space::base + marks, base.height()};
}

}  // namespace accrue::ui
