// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <QWidget>
#include <optional>

#include "kit/clock.h"

namespace accrue::ui {

class PlotCanvas;

/// A dotted line at the point where two curves part, with a chip for each differing key. Lies over a plot and ignores
/// clicks.
class PartingMark : public QWidget {
  Q_OBJECT

 public:
  explicit PartingMark(PlotCanvas* canvas);
  /// `at`: the point on every clock; empty hides the mark. The chips are beside the line.
  void setParting(const std::optional<ClockPoint>& at, const QStringList& chips);
  /// Follows the plot's view; call it after drawing.
  void place(Clock clock);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  PlotCanvas* canvas_;
  std::optional<ClockPoint> at_;
  QStringList chips_;
  double pixel_ = 0.0;  ///< of the line
};

}  // namespace accrue::ui
