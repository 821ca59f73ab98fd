// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class FieldEditor;

/// Leaves Undo and Redo to the window, whose history holds every edit: a line edit would keep the keys for its own.
/// Text that means no value never reached the document; while it stands, the keys are the line edit's.
class UndoGuard : public QObject {
  Q_OBJECT

 public:
  static void protect(FieldEditor* editor);

 protected:
  bool eventFilter(QObject* object, QEvent* event) override;

 private:
  explicit UndoGuard(FieldEditor* editor);

  bool text_rejected_ = false;
};

}  // namespace accrue::ui
