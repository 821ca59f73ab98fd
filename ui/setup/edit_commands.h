// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace accrue::ui {

class Actions;
class SetupPanel;
class SpecDocument;

/// Connects the set-up's part of the Edit menu: undo, redo, and finding a field.
void connectEditCommands(const Actions& actions, SpecDocument* document, SetupPanel* setup, QObject* parent);

}  // namespace accrue::ui
