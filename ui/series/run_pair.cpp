// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_pair.h"

#include <QCoreApplication>
#include <QObject>
#include <cmath>

#include "accrue/run/record/curve_parting.h"
#include "kit/no_value.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "run_name.h"
#include "run_series.h"

namespace accrue::ui {

namespace {

struct RunPairText {
  Q_DECLARE_TR_FUNCTIONS(RunPair)
};

LossCurve curveOf(const RunSeries& run) {
  const SeriesStore& losses = run.series(Metric::updateLoss);
  const ClockColumn& updates = losses.clock(Clock::update);
  const ClockColumn& samples = losses.clock(Clock::sample);
  LossCurve curve{run.id().toStdString(), run.branchedFrom().toStdString(), {}};
  curve.points.reserve(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (isMeasured(losses.value(i)))
      curve.points.push_back({std::llround(updates[i]), std::llround(samples[i]), losses.value(i)});
  return curve;
}

/// "after the same number of samples", as the end of a sentence.
QString samePlace(ComparisonClock clock) {
  return clock == ComparisonClock::samples ? RunPairText::tr("after the same number of samples")
                                           : RunPairText::tr("at the same update");
}

}  // namespace

std::vector<SpecDifference> changedKeys(const RunSeries& first, const RunSeries& second) {
  if (!first.spec() || !second.spec()) return {};
  std::vector<SpecDifference> differences = diff_specs(*first.spec(), *second.spec());
  std::erase_if(differences, [](const SpecDifference& difference) { return difference.key == "run.name"; });
  for (SpecDifference& difference : differences) {
    difference.left = settingValue(*first.spec(), difference.key).toStdString();
    difference.right = settingValue(*second.spec(), difference.key).toStdString();
  }
  return differences;
}

PairComparison comparisonOf(const RunSeries& first, const RunSeries& second) {
  return compare_pair(curveOf(first), curveOf(second));
}

Clock plotClock(ComparisonClock clock) {
  return clock == ComparisonClock::samples ? Clock::sample : Clock::update;
}

std::optional<ClockPoint> partingOf(const RunSeries& first, const PairComparison& compared) {
  if (!compared.distance.parting) return std::nullopt;
  const ClockTable& clocks = first.series(Metric::updateLoss).clocks();
  const std::size_t behind =
      clocks[plotClock(compared.clock)].upperBound(static_cast<double>(compared.distance.parting->at) + 0.5);
  return behind > 0 ? std::optional(clocks.point(behind - 1)) : std::nullopt;
}

QString partingSentence(const RunSeries& first, const RunSeries& second, const PairComparison& compared) {
  const CurveDistance& distance = compared.distance;
  const QString count = groupedNumber(distance.shared_points);
  if (distance.shared_points == 0)
    //: %1 is "after the same number of samples" or "at the same update"
    return RunPairText::tr("The runs report no loss %1, so their losses cannot be compared.")
        .arg(samePlace(compared.clock));
  //: The second run's loss less the first one's
  const QString which = RunPairText::tr("%1 \u2212 %2").arg(second.name(), first.name());
  if (distance.too_few_points) {
    const SharedPoint& apart = *distance.first_divergence;
    const QString where = compared.clock == ComparisonClock::samples
                              ? RunPairText::tr("after %1 samples").arg(groupedNumber(apart.at))
                              : RunPairText::tr("at update %1").arg(groupedNumber(apart.at));
    return RunPairText::tr(
               "The losses first differ %1: %2 is %3. The runs report a loss %4 %5 times. That is too few to judge the "
               "difference: at least %6 are needed.")
        .arg(where, which, valueText(apart.second - apart.first, 3), samePlace(compared.clock), count,
             groupedNumber(static_cast<std::int64_t>(fewest_points)));
  }
  if (!distance.parting)
    return distance.first_divergence
               ? RunPairText::tr(
                     "The losses of %1 and %2 do not part: their difference is not larger than it varies from one "
                     "update to the next.")
                     .arg(first.name(), second.name())
               : RunPairText::tr("The losses are equal in every bit at all %1 updates that both reported.").arg(count);
  const ClockPoint at = partingOf(first, compared).value_or(ClockPoint{});
  const QString update = groupedNumber(std::llround(at[Clock::update]));
  const QString where =
      compared.clock == ComparisonClock::samples
          ? RunPairText::tr("The losses part at update %1 of %2, after %3 samples")
                .arg(update, first.name(), groupedNumber(distance.parting->at))
          : RunPairText::tr("The losses part at update %1 (the runs do not both count samples)").arg(update);
  const QString difference = valueText(distance.parting->second - distance.parting->first, 3);
  if (distance.noise > 0.0)
    return RunPairText::tr("%1: the difference, %2, is %3, its noise %4.")
        .arg(where, which, difference, valueText(distance.noise, 3));
  return RunPairText::tr("%1: the difference, %2, is %3; before, they are equal but for rounding.")
      .arg(where, which, difference);
}

QStringList changeTexts(const RunSeries& first, const RunSeries& second) {
  QStringList texts;
  for (const SpecDifference& difference : changedKeys(first, second)) {
    const SpecField* field = find_field(difference.key);
    //: A changed key, its value in the first run and in the second
    texts << RunPairText::tr("%1 %2 \u2192 %3")
                 .arg(field ? fromView(field->label) : QString::fromStdString(difference.key),
                      QString::fromStdString(difference.left), QString::fromStdString(difference.right));
  }
  return texts;
}

}  // namespace accrue::ui
