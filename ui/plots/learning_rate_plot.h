// SPDX-License-Identifier: GPL-3.0-or-later
// LearningRatePlot: the planned curve in dots, and over it, as a line, the rate of each update.
#pragma once

#include "metric_plot.h"

namespace accrue::ui {

class LearningRatePlot final : public MetricPlot {
  Q_OBJECT

 public:
  explicit LearningRatePlot(PlotHub& hub, QWidget* parent = nullptr);

 protected:
  void addBeneath(const RunSeries& run, double pixels, MinMax& extent) override;
};

}  // namespace accrue::ui
