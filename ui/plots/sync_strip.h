// SPDX-License-Identifier: GPL-3.0-or-later
// SyncStrip: one lane per rank: forward, backward and optimizer in three tints, collectives in a second hue with a
// height by bytes, waiting hatched, windows separated by hairlines. Where ranks communicate over more than one axis,
// each axis has lanes of its own, in its shade. Lanes that do not fit are reached by a scroll bar.
#pragma once

#include "plots/plot_view.h"
#include "plots/sync_lanes.h"

class QScrollBar;

namespace accrue::ui {

class SyncStrip final : public PlotView {
  Q_OBJECT

 public:
  explicit SyncStrip(PlotHub& hub, QWidget* parent = nullptr);
  QString summary() const override;
  QString valueAt(const RunSeries& run, double x) const override;

 protected:
  void rebuild(double pixels) override;
  Readout readout(double x) const override;
  std::vector<HeaderItem> legend() const override;

 private:
  const RunSeries* shown() const;
  QString laneText(const RunSeries& run, const SyncLanes::Row& row, double x) const;
  void updateLabels(const RunSeries* run);
  /// Shows as many lanes as fit, from the scroll bar's position on.
  void placeLanes();

  SyncLanes* lanes_;
  QScrollBar* bar_;
  QSharedPointer<QCPAxisTickerText> ticker_;
  double hoveredLane_ = 0.0;
};

}  // namespace accrue::ui
