// SPDX-License-Identifier: GPL-3.0-or-later
#include "undo_guard.h"

#include <QEvent>
#include <QKeyEvent>
#include <QKeySequence>
#include <QLineEdit>

#include "field_editor.h"

namespace accrue::ui {

void UndoGuard::protect(FieldEditor* editor) {
  QWidget* widget = editor->widget();
  auto* line = qobject_cast<QLineEdit*>(widget);
  if (!line) line = widget->findChild<QLineEdit*>();
  if (!line) return;
  auto* guard = new UndoGuard(editor);
  line->installEventFilter(guard);
  // A spin box passes the event to its line edit by a direct call, which bypasses the line edit's event filters.
  if (widget != line) widget->installEventFilter(guard);
}

bool UndoGuard::eventFilter(QObject*, QEvent* event) {
  if (event->type() != QEvent::ShortcutOverride) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  if (!key->matches(QKeySequence::Undo) && !key->matches(QKeySequence::Redo)) return false;
  event->ignore();
  return true;
}

}  // namespace accrue::ui
