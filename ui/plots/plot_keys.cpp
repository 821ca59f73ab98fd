// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot_keys.h"

#include <algorithm>
#include <array>

#include "canvas/plot_hub.h"
#include "canvas/plot_view.h"
#include "plot_area.h"
#include "points/smoothing.h"

namespace accrue::ui {

namespace {

constexpr double key_zoom = 1.25;
constexpr double key_pan = 0.1;
constexpr double far_pan = 0.5;

enum class Shift { no, yes, either };

struct PlotKey {
  int key;
  Shift shift;
  void (*act)(PlotArea& plots, bool shift);
};

constexpr auto table = std::to_array<PlotKey>({
    {Qt::Key_A, Shift::either, [](PlotArea& plots, bool) { plots.fit(); }},
    {Qt::Key_L, Shift::no, [](PlotArea& plots, bool) { plots.setLogY(!plots.logY()); }},
    {Qt::Key_End, Shift::either, [](PlotArea& plots, bool) { plots.setFollowLive(true); }},
    {Qt::Key_S, Shift::either,
     [](PlotArea& plots, bool shift) { plots.setSmoothing(nextSmoothing(plots.smoothing(), shift ? -1 : 1)); }},
    {Qt::Key_Plus, Shift::either, [](PlotArea& plots, bool) { plots.zoomX(key_zoom); }},
    {Qt::Key_Equal, Shift::either, [](PlotArea& plots, bool) { plots.zoomX(key_zoom); }},
    {Qt::Key_Minus, Shift::either, [](PlotArea& plots, bool) { plots.zoomX(1.0 / key_zoom); }},
    {Qt::Key_Underscore, Shift::either, [](PlotArea& plots, bool) { plots.zoomX(1.0 / key_zoom); }},
    {Qt::Key_Left, Shift::either, [](PlotArea& plots, bool shift) { plots.panX(shift ? -far_pan : -key_pan); }},
    {Qt::Key_Right, Shift::either, [](PlotArea& plots, bool shift) { plots.panX(shift ? far_pan : key_pan); }},
    {Qt::Key_Backspace, Shift::no, [](PlotArea& plots, bool) { plots.zoomBack(); }},
    {Qt::Key_Backspace, Shift::yes, [](PlotArea& plots, bool) { plots.zoomForward(); }},
    {Qt::Key_W, Shift::either, [](PlotArea& plots, bool) { plots.zoomToWindow(); }},
    {Qt::Key_N, Shift::either, [](PlotArea& plots, bool) { plots.stepWindow(1); }},
    {Qt::Key_P, Shift::either, [](PlotArea& plots, bool) { plots.stepWindow(-1); }},
    {Qt::Key_T, Shift::either, [](PlotArea& plots, bool) { plots.showTable(plots.currentView()); }},
    {Qt::Key_F10, Shift::yes,
     [](PlotArea& plots, bool) { Q_EMIT plots.menuRequested(plots.currentView(), plots.currentView()->menuPlace()); }},
});

}  // namespace

bool pressPlotKey(PlotArea& plots, PlotHub& hub, int key, Qt::KeyboardModifiers modifiers) {
  const bool shift = modifiers.testFlag(Qt::ShiftModifier);
  if (modifiers & (Qt::AltModifier | Qt::MetaModifier)) return false;
  if (modifiers.testFlag(Qt::ControlModifier)) {
    if (key != Qt::Key_Left && key != Qt::Key_Right) return false;
    hub.stepCursor(key == Qt::Key_Right ? 1 : -1);
    return true;
  }
  if (key >= Qt::Key_1 && key <= Qt::Key_7 && !shift) {
    plots.setClock(allClocks[static_cast<std::size_t>(key - Qt::Key_1)]);
    return true;
  }
  if (key == Qt::Key_C) return plots.copyReadOut();
  if (key == Qt::Key_Escape) {
    if (!hub.cursor()) return false;
    hub.setCursor({});
    return true;
  }
  const auto row = std::ranges::find_if(table, [key, shift](const PlotKey& each) {
    return each.key == key && (each.shift == Shift::either || (each.shift == Shift::yes) == shift);
  });
  if (row == table.end()) return false;
  row->act(plots, shift);
  return true;
}

}  // namespace accrue::ui
