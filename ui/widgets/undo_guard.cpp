// SPDX-License-Identifier: GPL-3.0-or-later
#include "undo_guard.h"

#include <QKeyEvent>
#include <QLineEdit>

namespace accrue::ui {

void UndoGuard::protect(QWidget* widget) {
  QList<QLineEdit*> lines = widget->findChildren<QLineEdit*>();
  if (auto* self = qobject_cast<QLineEdit*>(widget)) lines.append(self);
  for (QLineEdit* line : lines) line->installEventFilter(new UndoGuard(line));
}

bool UndoGuard::eventFilter(QObject* object, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return true;
    }
  }
  return QObject::eventFilter(object, event);
}

}  // namespace accrue::ui
