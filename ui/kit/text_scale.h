// SPDX-License-Identifier: GPL-3.0-or-later
// Size of all text, in widgets and plots, as a factor of the system's.
#pragma once

namespace accrue::ui {

inline constexpr double smallestText = 0.8;
inline constexpr double largestText = 2.5;

/// Current factor.
double textScale();
/// Size of an icon beside text.
int iconSide();
/// Scales the application's font, and the fonts that widgets set themselves. Thread: GUI.
void setTextScale(double factor);
/// Returns the next larger (direction 1) or smaller (-1) of the available sizes.
double nextTextScale(double factor, int direction);

}  // namespace accrue::ui
