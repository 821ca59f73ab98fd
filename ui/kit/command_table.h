// SPDX-License-Identifier: GPL-3.0-or-later
// The table of the studio's commands: names, keys and help in the order of the menus. Menus, palette, shortcut sheet,
// plots and the manual's page of commands read it. Its rows are in command_list.inl.h.
#pragma once

#include <QKeySequence>
#include <QList>
#include <optional>
#include <span>

class QKeyEvent;

namespace accrue::ui {

/// A row with a name: a command, for which Actions holds one QAction, or keys that are no entry of a menu.
enum class Command {
#define COMMAND(name, ...) name,
#define NAMED(kind, name, ...) name,
#define ROW(...)
#include "command_list.inl.h"
};

/// Where keys work.
enum class KeyPlace {
  anywhere,
  inRuns,   ///< while the runs table has the focus
  inQueue,  ///< while the list of waiting runs has the focus
  inPlots,  ///< while a plot has the focus, which handles them; a menu only shows them
  onStartPage,
  inManual,  ///< while the manual's window is active
};

/// A row of the menu bar: a menu begins, or an entry of the menu that began last.
struct MenuRow {
  enum Kind {
    menu,
    submenu,
    choice,  ///< of the submenu that began last
    clocks,  ///< a choice for each clock, with one of the keys
    panels,  ///< a switch for each panel, with one of the keys while there are some
    command,
    keys_alone,  ///< without an entry
    separator,
  };

  Kind kind = separator;
  std::optional<Command> id = {};
  const char* name = "";  ///< object name of the menu or the action
  const char* text = "";  ///< with its mnemonic
  const char* keys = "";  ///< separated by spaces
  const char* icon = "";
  const char* help = "";    ///< longer description; empty if the name says it all
  const char* family = "";  ///< of a submenu or of panels: what lists of all commands call its choices, "Theme"
  KeyPlace place = KeyPlace::anywhere;
  bool checkable = false;
};

std::span<const MenuRow> menuTable();
const MenuRow& rowOf(Command command);

QList<QKeySequence> keysOf(const MenuRow& row);
QList<QKeySequence> keysOf(Command command);
/// Whether exactly these keys are pressed.
bool isKeyOf(Command command, const QKeyEvent& pressed);

}  // namespace accrue::ui
