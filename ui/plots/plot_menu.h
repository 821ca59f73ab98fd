// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

class QMenu;
class QPoint;
class QSettings;

namespace accrue::ui {

class PlotArea;
class PlotView;
class Actions;

/// Choice and order of the shown plots: a submenu of the Plot menu, and each plot's own menu. Both are remembered.
class PlotMenu : public QObject {
  Q_OBJECT

 public:
  PlotMenu(const Actions& actions, PlotArea* plots, QMenu* plot_menu, QSettings* settings, QObject* parent = nullptr);

 private:
  /// Adds one entry per plot, checked if shown.
  void fill(QMenu* menu);
  void showMenu(PlotView* view, const QPoint& at);

  const Actions& actions_;
  PlotArea* plots_;
};

}  // namespace accrue::ui
