// SPDX-License-Identifier: GPL-3.0-or-later
#include "edit_commands.h"

#include <QUndoStack>

#include "document/spec_document.h"
#include "field_form.h"
#include "kit/actions.h"
#include "setup_panel.h"

namespace accrue::ui {

void connectEditCommands(const Actions& actions, SpecDocument* document, SetupPanel* setup, QObject* parent) {
  QUndoStack* stack = document->undoStack();
  FieldForm* form = setup->form();
  QAction* undo = actions[Command::undo];
  QAction* redo = actions[Command::redo];
  // Text that was typed last and is no value is no edit: undo discards it and keeps the edit before it.
  QObject::connect(undo, &QAction::triggered, parent, [form, stack] {
    if (!form->discardRejectedText()) stack->undo();
  });
  QObject::connect(redo, &QAction::triggered, stack, &QUndoStack::redo);
  const auto enable_undo = [undo, form, stack] {
    undo->setEnabled(stack->canUndo() || !form->rejectedFields().isEmpty());
  };
  QObject::connect(stack, &QUndoStack::canUndoChanged, parent, enable_undo);
  QObject::connect(form, &FieldForm::rejectedFieldsChanged, parent, enable_undo);
  QObject::connect(stack, &QUndoStack::canRedoChanged, redo, &QAction::setEnabled);
  enable_undo();
  redo->setEnabled(stack->canRedo());
  QObject::connect(actions[Command::find], &QAction::triggered, setup, &SetupPanel::focusSearch);
}

}  // namespace accrue::ui
