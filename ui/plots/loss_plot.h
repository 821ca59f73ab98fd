// SPDX-License-Identifier: GPL-3.0-or-later
// LossPlot: the loss of each micro-step pale (a line, or a min-max band if there are more points than pixels), over it
// the loss of each update, smoothed on request, and evaluations as points.
#pragma once

#include <map>
#include <memory>

#include "models/smoothing.h"
#include "plots/plot_view.h"

namespace accrue::ui {

class CurveLayer;
class MarkTrack;

class LossPlot final : public PlotView {
  Q_OBJECT

 public:
  explicit LossPlot(PlotHub& hub, QWidget* parent = nullptr);
  QString summary() const override;
  QString valueAt(const RunSeries& run, double x) const override;
  PlotTable table() const override;

 protected:
  void rebuild(double pixels) override;
  Readout readout(double x) const override;

 private:
  struct Extent {
    double low = 0.0;
    double high = 0.0;
    bool any = false;
  };
  struct Account {
    std::size_t stored = 0;
    bool reduced = false;
    std::size_t notFinite = 0;
    std::size_t notPositive = 0;
    std::int64_t notDrawn = 0;  ///< traces left out because the studio was too slow
  };
  void addRun(RunSeries& run, double pixels);
  void addMarkers(const RunSeries& run, const SeriesView& view, double spacing);
  void take(const SeriesView& view);
  SmoothedSeries& smoothed(RunSeries& run);
  void updateBadge(double pixels);
  void updateScale();

  CurveLayer* curves_;
  MarkTrack* marks_;
  QSharedPointer<QCPAxisTicker> linear_;
  QSharedPointer<QCPAxisTicker> logarithmic_;
  std::map<const QObject*, std::unique_ptr<SmoothedSeries>> smoothed_;
  Extent extent_;
  Account account_;
};

}  // namespace accrue::ui
