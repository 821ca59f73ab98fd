// SPDX-License-Identifier: GPL-3.0-or-later
#include "edit_commands.h"

#include <QUndoStack>

#include "document/spec_document.h"
#include "field_form.h"
#include "kit/actions.h"
#include "setup_panel.h"

namespace accrue::ui {

EditCommands::EditCommands(const Actions& actions, SpecDocument* document, SetupPanel* setup, QObject* parent)
    : QObject(parent) {
  QUndoStack* stack = document->undoStack();
  FieldForm* form = setup->form();
  QAction* undo = actions[Command::undo];
  QAction* redo = actions[Command::redo];
  // Text that was typed last and is no value is no edit: undo discards it and keeps the edit before it.
  connect(undo, &QAction::triggered, this, [form, stack] {
    if (!form->discardRejectedText()) stack->undo();
  });
  connect(redo, &QAction::triggered, stack, &QUndoStack::redo);
  const auto enable_undo = [undo, form, stack] {
    undo->setEnabled(stack->canUndo() || !form->rejectedFields().isEmpty());
  };
  connect(stack, &QUndoStack::canUndoChanged, this, enable_undo);
  connect(form, &FieldForm::rejectedFieldsChanged, this, enable_undo);
  connect(stack, &QUndoStack::canRedoChanged, redo, &QAction::setEnabled);
  enable_undo();
  redo->setEnabled(stack->canRedo());
  connect(actions[Command::find], &QAction::triggered, setup, &SetupPanel::focusSearch);
}

}  // namespace accrue::ui
