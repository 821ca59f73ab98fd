// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_keys.h"

#include <array>

#include "canvas/plot_hub.h"
#include "canvas/plot_view.h"
#include "kit/command_table.h"
#include "plot_area.h"
#include "points/smoothing.h"

namespace accrue::ui {

namespace {

constexpr double key_zoom = 1.25;
constexpr double key_pan = 0.1;
constexpr double far_pan = 0.5;

struct Press {
  PlotArea& plots;
  PlotHub& hub;
  qsizetype which;  ///< of the keys in the command's row
  bool shift;
};

struct PlotKey {
  Command command;
  void (*act)(const Press& at);
  bool needs_cursor = false;
};

constexpr auto acts = std::to_array<PlotKey>({
    {Command::clocks, [](const Press& at) { at.plots.setClock(static_cast<Clock>(at.which)); }},
    {Command::fit, [](const Press& at) { at.plots.fit(); }},
    {Command::follow, [](const Press& at) { at.plots.setFollowLive(true); }},
    {Command::logY, [](const Press& at) { at.plots.setLogY(!at.plots.logY()); }},
    {Command::moreSmoothing, [](const Press& at) { at.plots.setSmoothing(nextSmoothing(at.plots.smoothing(), 1)); }},
    {Command::lessSmoothing, [](const Press& at) { at.plots.setSmoothing(nextSmoothing(at.plots.smoothing(), -1)); }},
    {Command::pan,
     [](const Press& at) { at.plots.panX((at.which == 0 ? -1.0 : 1.0) * (at.shift ? far_pan : key_pan)); }},
    {Command::zoomIn, [](const Press& at) { at.plots.zoomX(key_zoom); }},
    {Command::zoomOut, [](const Press& at) { at.plots.zoomX(1.0 / key_zoom); }},
    {Command::zoomBack, [](const Press& at) { at.plots.zoomBack(); }},
    {Command::zoomForward, [](const Press& at) { at.plots.zoomForward(); }},
    {Command::zoomWindow, [](const Press& at) { at.plots.zoomToWindow(); }},
    {Command::nextWindow, [](const Press& at) { at.plots.stepWindow(1); }},
    {Command::previousWindow, [](const Press& at) { at.plots.stepWindow(-1); }},
    {Command::moveCursor, [](const Press& at) { at.hub.stepCursor(at.which == 0 ? -1 : 1); }},
    {Command::removeCursor, [](const Press& at) { at.hub.setCursor({}); }, true},
    {Command::copyValues, [](const Press& at) { at.plots.copyReadOut(); }, true},
    {Command::showTable, [](const Press& at) { at.plots.showTable(at.plots.currentView()); }},
    {Command::plotMenu,
     [](const Press& at) {
       PlotView* view = at.plots.currentView();
       Q_EMIT at.plots.menuRequested(view, view->menuPlace());
     }},
});

}  // namespace

bool pressPlotKey(PlotArea& plots, PlotHub& hub, int key, Qt::KeyboardModifiers modifiers) {
  // Shift changes nothing where no row has it.
  for (const Qt::KeyboardModifiers held : {modifiers, modifiers & ~Qt::ShiftModifier})
    for (const PlotKey& each : acts) {
      const QKeySequence pressed(QKeyCombination(held, static_cast<Qt::Key>(key)));
      const qsizetype which = keysOf(each.command).indexOf(pressed);
      if (which < 0) continue;
      if (each.needs_cursor && !hub.cursor()) return false;
      each.act({plots, hub, which, modifiers.testFlag(Qt::ShiftModifier)});
      return true;
    }
  return false;
}

}  // namespace accrue::ui
