// SPDX-License-Identifier: GPL-3.0-or-later
// SyncStrip: one lane per rank: forward, backward and optimizer in three tints, collectives in a second hue with a
// height by bytes, those that train no weights low and grey, waiting hatched, windows separated by hairlines. If ranks
// communicate over more than one axis, each axis has its own lanes, in its shade. A scroll bar reaches lanes that do
// not fit.
#pragma once

#include "canvas/plot_view.h"
#include "sync_lanes.h"

class QScrollBar;

namespace accrue::ui {

class SyncStrip final : public PlotView {
  Q_OBJECT

 public:
  /// Run whose ranks are shown: the focused one, or the one shown before it, for a comparison one above the other.
  enum class Whose { focused, other };

  SyncStrip(PlotHub& hub, int number, const QString& objectName, Whose whose, QWidget* parent = nullptr);
  QString summary() const override;
  QString valueAt(const RunSeries& run, double x) const override;
  /// Returns a row for every window and rank: its compute, transfer and wait times.
  PlotTable table() const override;

 protected:
  void rebuild(double pixels) override;
  Readout readout(double x) const override;
  std::vector<HeaderItem> legend() const override;
  int leastArea(bool whole) const override;

 private:
  const RunSeries* shown() const;
  /// Whether the header must name the run of these lanes: another run is shown, or this one is not among the shown.
  bool isNamed(const RunSeries* run) const;
  QString title() const;
  /// Returns how often gradients were reduced, the bytes sent, and the bytes of another way of reducing; or "no
  /// gradient reductions".
  QString reductions(const RunSeries& run) const;
  /// Returns the same, followed by all other communication.
  QString badge(const RunSeries& run) const;
  QString badgeHelp(const RunSeries& run) const;
  QString laneText(const RunSeries& run, const SyncLanes::Row& row, double x) const;
  void updateLabels(const RunSeries* run);
  /// Shows as many lanes as fit, from the scroll bar's position on.
  void placeLanes();

  Whose whose_;
  SyncLanes* lanes_;
  QScrollBar* bar_;
  QSharedPointer<QCPAxisTickerText> ticker_;
  struct {
    int first = 0;
    int count = 0;
  } shownLanes_;
  double hoveredLane_ = 0.0;
};

}  // namespace accrue::ui
