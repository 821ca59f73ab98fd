// SPDX-License-Identifier: GPL-3.0-or-later
// A plot for assistive technology: a chart with a name, a summary sentence, and the values at the cursor.
#pragma once

namespace accrue::ui {

/// Registers the interface; calling it again does nothing.
void installPlotAccessibility();

}  // namespace accrue::ui
