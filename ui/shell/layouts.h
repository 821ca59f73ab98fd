// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts of the View menu.
#pragma once

#include <QMainWindow>

namespace accrue::ui {

enum class DockLayout { studio, compare, debug, lesson };

/// From the default layout on, while no lesson is open: hides the docks that a layout has no use for, and gives the
/// others their room.
void applyLayout(QMainWindow* window, DockLayout layout);

}  // namespace accrue::ui
