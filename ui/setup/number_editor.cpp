// SPDX-License-Identifier: GPL-3.0-or-later
#include "number_editor.h"

namespace accrue::ui {

NumberEditor::NumberEditor(const SpecField& field, QWidget* parent)
    : FieldEditor(parent), field_(field), edit_(new NumberEdit(field, parent)) {
  if (field.optional) edit_->setPlaceholder(tr("derived"));
  connect(edit_, &NumberEdit::textEdited, this, &NumberEditor::takeText);
  connect(edit_, &NumberEdit::editingFinished, this, &NumberEditor::finished);
}

void NumberEditor::show(const RunSpec& spec) {
  edit_->setValue(field_.get(spec));
  Q_EMIT problemChanged(QString());
}

void NumberEditor::takeText() {
  const auto value = edit_->value();
  Q_EMIT problemChanged(value ? QString() : edit_->problem());
  if (value) Q_EMIT edited(*value);
}

}  // namespace accrue::ui
