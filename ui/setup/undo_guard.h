// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class FieldEditor;

/// Event filter that leaves Undo and Redo to the window, whose history has every edit; a line edit would otherwise
/// handle the keys itself.
class UndoGuard : public QObject {
  Q_OBJECT

 public:
  static void protect(FieldEditor* editor);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  using QObject::QObject;
};

}  // namespace accrue::ui
