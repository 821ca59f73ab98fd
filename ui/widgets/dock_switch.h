// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>

class QDockWidget;

namespace accrue::ui {

/// The View menu's command of one dock: shows it, brings it to the front and gives it the focus; hides it only if it
/// has the focus. Checked while the dock is open, in front or behind a tab.
class DockSwitch : public QAction {
  Q_OBJECT

 public:
  /// Owned by the dock. The object name is the dock's with "Action" behind it.
  explicit DockSwitch(QDockWidget* dock);

 private:
  void turn();

  QDockWidget* dock_;
};

/// Shows a dock in front of its tabs.
void raiseDock(QDockWidget* dock);
/// Does that, and focuses the first of its controls, or its panel if it has none.
void bringToFront(QDockWidget* dock);

}  // namespace accrue::ui
