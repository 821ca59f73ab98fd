// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace accrue::ui {

/// Of a figure on paper.
struct FigureSize {
  double widthMm = 160.0;
  double heightMm = 120.0;
  double fontPoints = 8.0;  ///< of tick labels and legend; titles are larger in proportion
  bool operator==(const FigureSize&) const = default;
};

}  // namespace accrue::ui
