// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QList>
#include <QMainWindow>
#include <QObject>
#include <QPointer>
#include <QSize>
#include <functional>
#include <utility>
#include <vector>

#include "runs/dock_panel.h"

class QDockWidget;

namespace accrue::ui {

class RunTag;

/// The docks of the window, one for each feature's panel. Their order is that of the View menu, of the tabs and of
/// the panes that F6 goes through.
class Docks : public QObject {
  Q_OBJECT

 public:
  /// `focus_centre`: gives the keyboard to the centre, the first pane.
  Docks(QMainWindow* window, std::function<void()> focus_centre);

  void add(const DockPanel& panel);
  /// Puts the docks in the default layout and shows the default ones. Sizes: see sizes().
  void place();
  /// Returns the docks with a fixed size in the default layout, for the window's current height.
  std::vector<std::pair<QPointer<QDockWidget>, QSize>> sizes() const;
  QList<QDockWidget*> all() const;
  QDockWidget* find(const char* name) const;
  /// Shows a dock in front of its tabs.
  void bringUp(const char* name) const;
  /// Moves the focus to the next pane (1) or the previous one (-1).
  void cycle(int direction);

  void setRun(RunSeries* run);
  void refresh();
  void setEditable(bool editable);

 private:
  struct Dock {
    DockPanel panel;
    QDockWidget* dock;
    RunTag* tag;  ///< nullptr if the panel speaks of no run
  };
  void showTags();
  void focus(std::size_t pane);
  /// 0 is the centre, 1 the first dock.
  std::size_t focusedPane() const;
  /// Whether F6 stops there.
  bool takesFocus(const Dock& dock) const;

  QMainWindow* window_;
  std::function<void()> focus_centre_;
  std::vector<Dock> docks_;
};

}  // namespace accrue::ui
