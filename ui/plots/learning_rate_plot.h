// SPDX-License-Identifier: GPL-3.0-or-later
// LearningRatePlot: the planned curve in dots, and over it, as a line, the rate that each update used.
#pragma once

#include "models/column_reducer.h"
#include "plots/plot_view.h"

namespace accrue::ui {

class CurveLayer;

class LearningRatePlot final : public PlotView {
  Q_OBJECT

 public:
  explicit LearningRatePlot(PlotHub& hub, QWidget* parent = nullptr);
  QString summary() const override;
  QString valueAt(const RunSeries& run, double x) const override;

 protected:
  void rebuild(double pixels) override;
  Readout readout(double x) const override;

 private:
  ReducedLine planned(const RunSeries& run, double pixels) const;

  CurveLayer* curves_;
};

}  // namespace accrue::ui
