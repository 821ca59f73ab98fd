// SPDX-License-Identifier: GPL-3.0-or-later
// UndoGuard: one history. A line of text keeps its own undo and would take the keys for it while it has the focus; with
// the guard they reach the document's commands, which know every field.
#pragma once

#include <QObject>

class QWidget;

namespace accrue::ui {

class UndoGuard : public QObject {
  Q_OBJECT

 public:
  /// Guards every line of text in the widget, itself included.
  static void protect(QWidget* widget);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  using QObject::QObject;
};

}  // namespace accrue::ui
