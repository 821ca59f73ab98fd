// SPDX-License-Identifier: GPL-3.0-or-later
// GroupCurve: the losses of several seeds as one curve, the mean, with a band around it from the least to the most.
// With the few seeds that one trains, the least and the most say more than a standard deviation, and no run lies
// outside of them.
#pragma once

#include <QPointer>
#include <QString>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "run_groups.h"
#include "run_series.h"
#include "series_store.h"

namespace accrue::ui {

/// Of runs that have ended; what they hold is copied. A point for every update of which all report a loss: on each
/// clock at the mean of their positions, which are equal but on clocks that measure time or count tokens. Where one
/// loss is not finite, neither is the mean, and the band has a gap.
class GroupCurve {
 public:
  /// smoothing: the weight with which each member is smoothed by itself before they are put together; 0 = as measured.
  /// The points are the same ones with every weight.
  explicit GroupCurve(RunGroup group, double smoothing = 0.0);
  GroupCurve(const GroupCurve&) = delete;
  GroupCurve& operator=(const GroupCurve&) = delete;

  const RunGroup& group() const { return group_; }
  double smoothing() const { return smoothing_; }
  /// Whether its runs still exist and have the updates that were copied.
  bool isCurrent() const;
  bool holds(const RunSeries* run) const { return group_.runs.contains(run); }
  /// Whose colour it is drawn in: that of the first that was shown.
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
