// SPDX-License-Identifier: GPL-3.0-or-later
#include "group_curve.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "kit/no_value.h"
#include "kit/number_text.h"
#include "points/smoothing.h"

namespace accrue::ui {

namespace {

struct GroupCurveText {
  Q_DECLARE_TR_FUNCTIONS(GroupCurve)
};

/// Iteration over a member's updates in order.
struct Walk {
  Walk(const SeriesStore& store, double smoothing) : losses(&store) {
    if (smoothing > 0.0) smoothed.emplace(store, smoothing);
  }
  const SeriesStore* losses;
  std::optional<SmoothedSeries> smoothed;
  std::size_t at = 0;

  double loss() const { return smoothed ? smoothed->value(at) : losses->value(at); }
  bool ended() const { return at >= losses->size(); }
  double update() const { return std::round(losses->clock(Clock::update)[at]); }
};

}  // namespace

GroupCurve::GroupCurve(RunGroup group, double smoothing) : group_(std::move(group)), smoothing_(smoothing) {
  std::vector<Walk> walks;
  for (const RunSeries* run : std::as_const(group_.runs)) {
    const SeriesStore& losses = run->series(Metric::updateLoss);
    walks.emplace_back(losses, smoothing);
    sources_.push_back({run, losses.size(), losses.generation()});
  }
  std::vector<double> losses;
  const auto ended = [&walks] { return std::ranges::any_of(walks, &Walk::ended); };
  while (!walks.empty() && !ended()) {
    const double newest = std::ranges::max(walks, {}, &Walk::update).update();
    if (std::ranges::any_of(walks, [newest](const Walk& walk) { return walk.update() < newest; })) {
      for (Walk& walk : walks)
        if (walk.update() < newest) ++walk.at;
      continue;
    }
    ClockPoint place;
    losses.clear();
    for (Walk& walk : walks) {
      const ClockPoint point = walk.losses->clocks().point(walk.at);
      for (const Clock clock : allClocks) place[clock] += point[clock] / static_cast<double>(walks.size());
      losses.push_back(walk.loss());
      ++walk.at;
    }
    // Integers stay integers: their mean may be off by rounding.
    for (const Clock clock : {Clock::microStep, Clock::update, Clock::sample}) place[clock] = std::round(place[clock]);
    clocks_.append(place);
    const SampleSpread spread = spread_of(losses);
    const bool whole = spread.count == losses.size();
    const double none = std::ranges::all_of(losses, isMeasured) ? std::numeric_limits<double>::quiet_NaN() : noValue;
    mean_.append(whole ? spread.mean : none);
    least_.append(whole ? spread.least : none);
    most_.append(whole ? spread.most : none);
  }
}

bool GroupCurve::isCurrent() const {
  return std::ranges::all_of(sources_, [](const Source& source) {
    if (!source.run) return false;
    const SeriesStore& losses = source.run->series(Metric::updateLoss);
    return losses.size() == source.updates && losses.generation() == source.generation;
  });
}

int GroupCurve::colorIndex() const {
  int index = group_.runs.first()->colorIndex();
  for (const RunSeries* run : group_.runs) index = std::min(index, run->colorIndex());
  return index;
}

QString GroupCurve::name() const {
  //: %1 what a group of runs is called, %2 how many seeds it has
  return GroupCurveText::tr("%1: mean of %2 seeds").arg(group_.name, QString::number(group_.runs.size()));
}

QString GroupCurve::valueText(std::size_t point) const {
  //: A mean, the least and the most
  return GroupCurveText::tr("%1 (%2 to %3)")
      .arg(ui::valueText(mean_.value(point)), ui::valueText(least_.value(point)), ui::valueText(most_.value(point)));
}

}  // namespace accrue::ui
