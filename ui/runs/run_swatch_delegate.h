// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace accrue::ui {

/// Delegate that draws an eye, a run's colour and dash, its name, and its marking words: the legend of the plots. The
/// eye is open while the run is shown; a hidden run keeps its dash and marker in grey. A run that was never shown has
/// no swatch.
class RunSwatchDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                            const QModelIndex& index) const override;
  /// Area of a cell's eye that takes clicks.
  static QRect eyeRect(const QRect& cell);
};

}  // namespace accrue::ui
