// SPDX-License-Identifier: GPL-3.0-or-later
// LossPlot: the pale loss of each micro-step (a line, or a min-max band if there are more points than pixels), over it
// the loss of each update, optionally smoothed, and evaluations as points. For several seeds of one set-up it shows the
// mean and a band from the least to the greatest; the seeds are thin, except the focused one.
#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include "canvas/plot_view.h"
#include "points/smoothing.h"
#include "series/group_curve.h"

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
  std::vector<HeaderItem> legend() const override;
  /// In a figure the other plots explain the loss, so it is larger.
  int leastArea(bool) const override { return 2 * leastDrawing; }

 private:
  struct Extent {
    double low = 0.0;
    double high = 0.0;
    bool any = false;
    void add(double from, double to) {
      low = any ? std::min(low, from) : from;
      high = any ? std::max(high, to) : to;
      any = true;
    }
  };
  /// Visible range of Y of a run or a group of seeds.
  struct Reach {
    Extent extent;
    double begun = 0.0;    ///< the greatest of its first losses
    double risen = 0.0;    ///< its greatest visible loss
    std::size_t line = 0;  ///< index of its line among the curves
    QColor color;
  };
  struct Account {
    std::size_t stored = 0;
    bool reduced = false;
    std::size_t notFinite = 0;
    std::size_t notPositive = 0;
    std::int64_t notDrawn = 0;  ///< traces dropped because the studio was too slow
    std::size_t leaving = 0;    ///< runs that leave the axis at the top
  };
  using Groups = std::vector<std::shared_ptr<const GroupCurve>>;
  void addRun(RunSeries& run, double pixels);
  /// Adds a run as one of several seeds.
  void addSeed(RunSeries& run, double pixels);
  void addTrace(const RunSeries& run, double pixels);
  void addUpdates(const SeriesView& view, const QPen& pen, double pixels);
  void addEvaluations(const RunSeries& run, std::size_t ownLinesFrom, double pixels);
  void addAccount(const RunSeries& run);
  void addGroup(const GroupCurve& group, double pixels);
  /// Whether a run is drawn as one of several seeds.
  bool isSeed(const RunSeries& run, const Groups& groups) const;
  /// Smooths new groups, and forgets those that are gone.
  void smoothGroups(const Groups& groups);
  /// Returns the drawn form of a group: itself, or smoothed.
  const GroupCurve& drawn(const std::shared_ptr<const GroupCurve>& group) const;
  void addMarkers(const RunSeries& run, const SeriesView& view, double spacing);
  /// Begins one run's range with these losses, by which the run is judged.
  void beginReach(const SeriesView& losses, int colorIndex);
  /// Adds the visible part of a curve to the range begun last; returns its least and greatest value.
  MinMax take(const SeriesView& view);
  /// Sets the range of Y. A diverged run does not stretch a linear axis until the others are flat: its curve is cut at
  /// the upper edge, with a sign where it first leaves.
  void fitY();
  SmoothedSeries& smoothed(RunSeries& run);
  void updateBadge(double pixels);
  void updateScale();

  CurveLayer* curves_;
  MarkTrack* marks_;
  QSharedPointer<QCPAxisTicker> linear_;
  QSharedPointer<QCPAxisTicker> logarithmic_;
  std::map<const QObject*, std::unique_ptr<SmoothedSeries>> smoothed_;
  /// The key keeps the group alive, so no other group gets its address.
  std::map<std::shared_ptr<const GroupCurve>, std::shared_ptr<const GroupCurve>> smoothedGroups_;
  std::vector<Reach> reaches_;
  Account account_;
};

}  // namespace accrue::ui
