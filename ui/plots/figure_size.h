// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <functional>

namespace accrue::ui {

/// Size of a figure on paper.
struct FigureSize {
  double widthMm = 160.0;
  double heightMm = 120.0;
  double fontPoints = 8.0;  ///< of tick labels and legend; titles are proportionally larger
  bool operator==(const FigureSize&) const = default;
};

/// Returns why a figure cannot be drawn at a size, as a sentence; empty if it can.
using FigureCheck = std::function<QString(const FigureSize&)>;

}  // namespace accrue::ui
