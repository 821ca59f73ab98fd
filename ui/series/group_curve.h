// SPDX-License-Identifier: GPL-3.0-or-later
// GroupCurve: the losses of several seeds as one curve, their mean, with a band from the least to the greatest. With
// few seeds the extremes are more informative than a standard deviation, and no run is outside the band.
#pragma once

#include <QPointer>
#include <QString>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "points/series_store.h"
#include "run_groups.h"
#include "run_series.h"

namespace accrue::ui {

/// For finished runs, whose values are copied. It has a point for every update at which all report a loss. Its position
/// on each clock is the mean of theirs, which differ only on clocks that measure time or count tokens. If one loss is
/// not finite, neither is the mean, and the band has a gap.
class GroupCurve {
 public:
  /// smoothing: weight with which each member is smoothed before they are combined; 0: as measured. The points are the
  /// same for every weight.
  explicit GroupCurve(RunGroup group, double smoothing = 0.0);
  GroupCurve(const GroupCurve&) = delete;
  GroupCurve& operator=(const GroupCurve&) = delete;

  const RunGroup& group() const { return group_; }
  double smoothing() const { return smoothing_; }
  /// Whether its runs still exist and have the copied updates.
  bool isCurrent() const;
  bool holds(const RunSeries* run) const { return group_.runs.contains(run); }
  /// Index of its colour: that of the run that was shown first.
  int colorIndex() const;
  const SeriesStore& mean() const { return mean_; }
  const SeriesStore& least() const { return least_; }
  const SeriesStore& most() const { return most_; }
  /// "Demo: mean of 3 seeds".
  QString name() const;
  /// "2.31 (2.28 to 2.35)".
  QString valueText(std::size_t point) const;

 private:
  struct Source {
    QPointer<const RunSeries> run;
    std::size_t updates = 0;
    std::uint64_t generation = 0;
  };
  RunGroup group_;
  double smoothing_;
  std::vector<Source> sources_;
  ClockTable clocks_;
  SeriesStore mean_{clocks_};
  SeriesStore least_{clocks_};
  SeriesStore most_{clocks_};
};

}  // namespace accrue::ui
