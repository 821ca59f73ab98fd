// SPDX-License-Identifier: GPL-3.0-or-later
// The layout of the window as text that another machine understands: which panels are shown where, how much of the
// window each takes, and what the plots are drawn over. Sizes are shares, so that another screen fits.
#pragma once

#include <QByteArray>
#include <QMainWindow>

namespace accrue::ui {

class PlotArea;

/// A JSON object.
QByteArray describeArrangement(const QMainWindow& window, const PlotArea& plots);
/// From the default layout on. What the text does not say, or says wrongly, stays as it is. False: it is no layout.
bool applyArrangement(QMainWindow& window, PlotArea& plots, const QByteArray& text);

}  // namespace accrue::ui
