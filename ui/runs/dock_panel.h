// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <functional>
#include <string>

class QDockWidget;
class QWidget;

namespace accrue::ui {

class RunSeries;

/// A panel as its feature hands it to the window, which gives it a dock, a command in the View menu and a place in the
/// default layout. The functions are called while the panel lives; each may be empty.
struct DockPanel {
  const char* name = "";  ///< object name of the dock
  QString title;
  QWidget* panel = nullptr;
  Qt::DockWidgetArea area = Qt::LeftDockWidgetArea;  ///< in the default layout
  const char* behind = "";                           ///< the dock whose tab it is behind there; empty: it is in front
  int size = 0;                ///< its width there, at the bottom its height, in logical pixels; 0: any
  bool on_demand = false;      ///< hidden until a command opens it
  QWidget* control = nullptr;  ///< for the title bar
  int control_stretch = 0;
  bool takes_focus = true;           ///< F6 stops at it
  std::function<void()> focus = {};  ///< focuses its main part; empty: the first control that takes the focus
  std::function<void(QDockWidget*)> docked = {};     ///< once, with its dock
  std::function<void(RunSeries*)> set_run = {};      ///< another run has the focus; nullptr: none has
  std::function<void()> refresh = {};                ///< numbers have moved; at most once a frame
  std::function<void(bool)> set_editable = {};       ///< whether the set-up can be edited
  std::function<const RunSeries*()> speaks_of = {};  ///< the run that the title names
};

}  // namespace accrue::ui
