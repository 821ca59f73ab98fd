// SPDX-License-Identifier: GPL-3.0-or-later
// Saves and restores the window: its place and size, its docks, the folds of the form, and the view of the plots.
#pragma once

#include <QMainWindow>

class QSettings;

namespace accrue::ui {

class FieldForm;
class PlotArea;

/// False: the settings hold no layout of this version, and the docks stay as they are.
bool restoreView(QMainWindow* window, PlotArea* plots, FieldForm* form, const QSettings& settings);
void saveView(const QMainWindow& window, const PlotArea& plots, const FieldForm& form, QSettings& settings);

}  // namespace accrue::ui
