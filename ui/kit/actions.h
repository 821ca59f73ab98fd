// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QList>
#include <array>

#include "command_table.h"

class QActionGroup;

namespace accrue::ui {

/// The commands of the table as actions. A command's object name is its name with "Action" behind it.
class Actions {
 public:
  explicit Actions(QObject* owner);

  QAction* operator[](Command command) const { return commands_[static_cast<std::size_t>(command)]; }
  QActionGroup* clocks() const { return clocks_; }    ///< data: a Clock
  QActionGroup* themes() const { return themes_; }    ///< data: a ThemeMode
  QActionGroup* layouts() const { return layouts_; }  ///< data: the layout's number
  /// Those of the table in its order, then the groups'.
  const QList<QAction*>& all() const { return all_; }

 private:
  QAction* add(const MenuRow& row, QObject* owner);

  std::array<QAction*, commandCount> commands_{};
  QActionGroup* clocks_;
  QActionGroup* themes_;
  QActionGroup* layouts_;
  QList<QAction*> all_;
};

/// Keys of a command as displayed, including those of a focused plot.
QString keysText(const QAction& action);

}  // namespace accrue::ui
