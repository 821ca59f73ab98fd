// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QList>
#include <map>
#include <string_view>
#include <vector>

#include "command_table.h"

class QActionGroup;

namespace accrue::ui {

/// A line of whatever lists the commands: the palette, the shortcut sheet, the manual's page.
struct ListedCommand {
  const MenuRow* row = nullptr;
  QAction* action = nullptr;  ///< nullptr: keys that are no entry of a menu
  QString menu;               ///< the name of its menu
  QString family;             ///< "Theme", where it is one of several; otherwise empty

  /// As a menu shows it, without its mnemonic: "Save as...", "Theme: Dark".
  QString name() const;
  /// As displayed, now.
  QStringList keys() const;
  /// Empty if the name says it all.
  QString help() const;
};

/// Makes an action for a command that is in no menu; `owner` is the widget that it belongs to.
QAction* makeAction(Command command, QObject* owner);

/// The commands of the table as actions. A command's object name is its name with "Action" behind it.
class Actions {
 public:
  explicit Actions(QObject* owner);

  /// The action of a command; nullptr for keys that are no entry of a menu.
  QAction* operator[](Command command) const { return commands_[static_cast<std::size_t>(command)]; }
  /// Enables a command if nothing is lacking; what is lacking stands in place of its help.
  void enableUnless(const QString& lacking, Command command) const;
  /// The choices of a submenu, with their number as data; nullptr if a feature fills the submenu.
  QActionGroup* choices(std::string_view submenu) const;
  QActionGroup* clocks() const { return choices("clockMenu"); }    ///< data: a Clock
  QActionGroup* themes() const { return choices("themeMenu"); }    ///< data: a ThemeMode
  QActionGroup* layouts() const { return choices("layoutMenu"); }  ///< data: the layout's number
  /// Gives the switch of a panel its keys, and enters it into the list.
  void addPanel(QAction* show);
  const QList<QAction*>& panels() const { return panels_; }
  /// Commands and keys in the order of the table, then choices, then panels.
  const QList<ListedCommand>& list() const { return list_; }

 private:
  std::vector<QAction*> commands_;
  std::map<std::string_view, QActionGroup*> choices_;
  QList<QAction*> panels_;
  QList<ListedCommand> list_;
  ListedCommand panel_;  ///< the line of the panel that was added last
};

}  // namespace accrue::ui
