// SPDX-License-Identifier: GPL-3.0-or-later
#include "run_pair.h"

#include <QCoreApplication>
#include <QObject>
#include <cmath>

#include "models/number_text.h"
#include "models/run_name.h"
#include "models/run_series.h"
#include "models/run_text.h"

namespace accrue::ui {

namespace {

struct RunPairText {
  Q_DECLARE_TR_FUNCTIONS(RunPair)
};

struct Shared {
  std::vector<std::size_t> first_index;
  std::vector<double> first, second;
};

/// Both curves where they report after the same number of samples.
Shared sharedPoints(const RunSeries& first, const RunSeries& second) {
  const SeriesStore& a = first.series(Metric::updateLoss);
  const SeriesStore& b = second.series(Metric::updateLoss);
  Shared shared;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double left = std::round(a.clock(Clock::sample)[i]);
    const double right = std::round(b.clock(Clock::sample)[j]);
    if (left == right) {
      shared.first_index.push_back(i);
      shared.first.push_back(a.value(i));
      shared.second.push_back(b.value(j));
    }
    i += left <= right;
    j += right <= left;
  }
  return shared;
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

std::size_t sharedUpdates(const RunSeries& first, const RunSeries& second) {
  return sharedPoints(first, second).first.size();
}

PairDifference differenceOf(const RunSeries& first, const RunSeries& second) {
  const Shared shared = sharedPoints(first, second);
  PairDifference result;
  for (std::size_t i = 0; i < shared.first.size(); ++i) {
    result.samples.push_back(first.series(Metric::updateLoss).clock(Clock::sample)[shared.first_index[i]]);
    result.differences.push_back(shared.second[i] - shared.first[i]);
  }
  return result;
}

std::optional<PairParting> partingOf(const RunSeries& first, const RunSeries& second) {
  const Shared shared = sharedPoints(first, second);
  const auto parting = curve_parting(shared.first, shared.second);
  if (!parting) return std::nullopt;
  const std::size_t index = shared.first_index[parting->index];
  const SeriesStore& curve = first.series(Metric::updateLoss);
  return PairParting{index, std::llround(curve.clock(Clock::update)[index]),
                     std::llround(curve.clock(Clock::sample)[index]), parting->difference, parting->noise};
}

QString partingSentence(const RunSeries& first, const RunSeries& second) {
  const Shared shared = sharedPoints(first, second);
  if (shared.first.empty())
    return RunPairText::tr(
        "The runs have no update after the same number of samples, so their losses cannot be compared.");
  const auto parting = partingOf(first, second);
  if (!parting && too_few_to_judge(shared.first, shared.second))
    return RunPairText::tr(
               "The runs report a loss after the same number of samples %1 times. That is too few to judge the "
               "difference: at least %2 are needed.")
        .arg(groupedNumber(static_cast<std::int64_t>(shared.first.size())),
             groupedNumber(static_cast<std::int64_t>(fewest_points)));
  if (!parting)
    return shared.first == shared.second
               ? RunPairText::tr("The losses are equal in every bit at all %1 updates that both reported.")
                     .arg(groupedNumber(static_cast<std::int64_t>(shared.first.size())))
               : RunPairText::tr(
                     "The losses of %1 and %2 do not part: their difference is not larger than it varies from one "
                     "update to the next.")
                     .arg(first.name(), second.name());
  const QString where = RunPairText::tr("The losses part at update %1 of %2, after %3 samples")
                            .arg(groupedNumber(parting->update), first.name(), groupedNumber(parting->samples));
  //: The second run's loss less the first one's
  const QString which = RunPairText::tr("%1 \u2212 %2").arg(second.name(), first.name());
  if (parting->noise > 0.0)
    return RunPairText::tr("%1: the difference, %2, is %3, its noise %4.")
        .arg(where, which, valueText(parting->difference, 3), valueText(parting->noise, 3));
  return RunPairText::tr("%1: the difference, %2, is %3; before, they are equal but for rounding.")
      .arg(where, which, valueText(parting->difference, 3));
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
