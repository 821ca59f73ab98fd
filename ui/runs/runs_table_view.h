// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeView>

namespace accrue::ui {

/// The runs as rows: selected ones tinted, the focused one with a bar at its left, and an eye on each that shows or
/// hides its curves without moving the focus. A tooltip shows shortened text of a cell, and for a name the hidden
/// columns.
class RunsTableView final : public QTreeView {
  Q_OBJECT

 public:
  explicit RunsTableView(QWidget* parent = nullptr);

 Q_SIGNALS:
  /// The eye of a row was clicked, or Space was pressed on it.
  void eyeToggled(const QModelIndex& name);

 protected:
  void drawRow(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  /// Disabled, because letters are menu keys; the filter finds a run.
  void keyboardSearch(const QString&) override {}
  bool viewportEvent(QEvent* event) override;

 private:
  /// A context menu acts on its row, or on the selection if it contains the row; the focus does not move.
  void selectFor(const QModelIndex& menu_row);
  QString tipOf(const QModelIndex& cell) const;
  /// Returns the name cell whose eye is at a point; invalid if there is none.
  QModelIndex eyeAt(const QPoint& at) const;

  bool eye_pressed_ = false;  ///< until the button is released
};

}  // namespace accrue::ui
