// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <Qt>

namespace accrue::ui {

class PlotArea;
class PlotHub;

/// Carries out a key of a focused plot. Returns false if it has no meaning there.
bool pressPlotKey(PlotArea& plots, PlotHub& hub, int key, Qt::KeyboardModifiers modifiers);

}  // namespace accrue::ui
