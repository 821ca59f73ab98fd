// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace accrue::ui {

/// A choice in the list of a combo box: its name, and in muted text its meaning and the systems that use it.
class ChoiceNotesDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  static constexpr int noteRole = Qt::UserRole + 100;

  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  static int nameWidth(const QFontMetrics& metrics, const QModelIndex& index);
};

}  // namespace accrue::ui
