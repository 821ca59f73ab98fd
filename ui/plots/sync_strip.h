// SPDX-License-Identifier: GPL-3.0-or-later
// SyncStrip: one lane per rank: forward, backward and optimizer in three tints, collectives in a second hue with a
// height by bytes, waiting hatched, windows separated by hairlines.
#pragma once

#include "plots/plot_view.h"

namespace accrue::ui {

class SyncLanes;

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
  QString laneText(const RunSeries& run, std::int64_t rank, const Lane& lane, double x) const;
  void updateLabels(const RunSeries* run);

  SyncLanes* lanes_;
  QSharedPointer<QCPAxisTickerText> ticker_;
  double hoveredLane_ = 0.0;
};

}  // namespace accrue::ui
