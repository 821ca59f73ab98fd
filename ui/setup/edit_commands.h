// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class SetupPanel;
class SpecDocument;

/// The set-up's part of the Edit menu: undo, redo, and finding a field.
class EditCommands : public QObject {
  Q_OBJECT

 public:
  EditCommands(const Actions& actions, SpecDocument* document, SetupPanel* setup, QObject* parent);
};

}  // namespace accrue::ui
