// SPDX-License-Identifier: GPL-3.0-or-later
#include "field_editor.h"

#include <QWidget>

#include "choice_editor.h"
#include "kit/text.h"
#include "number_editor.h"
#include "text_editor.h"
#include "undo_guard.h"
#include "widgets/wheel_guard.h"

namespace accrue::ui {

namespace {

FieldEditor* make(const SpecField& field, QWidget* parent) {
  switch (field.type) {
    case FieldType::boolean:
      if (field.optional) return new ChoiceEditor(field, parent);
      return new SwitchEditor(field, parent);
    case FieldType::choice:
      return new ChoiceEditor(field, parent);
    case FieldType::integer:
    case FieldType::real:
      return new NumberEditor(field, parent);
    case FieldType::text:
    case FieldType::integers:
    case FieldType::reals:
    case FieldType::texts:
    case FieldType::matrix:
      return new TextEditor(field, parent);
  }
  return nullptr;
}

}  // namespace

FieldEditor* FieldEditor::create(const SpecField& field, QWidget* parent) {
  FieldEditor* editor = make(field, parent);
  QWidget* widget = editor->widget();
  widget->setObjectName(QStringLiteral("field.%1").arg(fromView(field.key)));
  widget->setAccessibleName(fromView(field.label));
  widget->setAccessibleDescription(fromView(field.help));
  WheelGuard::protect(widget);
  UndoGuard::protect(editor);
  return editor;
}

}  // namespace accrue::ui
