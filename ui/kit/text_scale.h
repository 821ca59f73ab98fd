// SPDX-License-Identifier: GPL-3.0-or-later
// The size of all text, of widgets and of plots alike, as a factor of the system's.
#pragma once

namespace accrue::ui {

inline constexpr double smallestText = 0.8;
inline constexpr double largestText = 2.5;

/// The present factor.
double textScale();
/// Of an icon beside text.
int iconSide();
/// Scales the application's font, and that of every widget that has one of its own. Thread: GUI.
void setTextScale(double factor);
/// The next larger (direction 1) or smaller (-1) of the sizes in use.
double nextTextScale(double factor, int direction);

}  // namespace accrue::ui
