// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs side by side: which keys differ, and where their losses part, at equal numbers of samples.
#pragma once

#include <QString>
#include <QStringList>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "accrue/run/curve_parting.h"
#include "accrue/run/spec_fields.h"

namespace accrue::ui {

class RunSeries;

struct PairParting {
  std::size_t first_index = 0;  ///< of the first run's update
  std::int64_t update = 0;      ///< its number
  std::int64_t samples = 0;
  double difference = 0.0;  ///< second less first
  double noise = 0.0;       ///< 0: the losses were equal before
};

/// As diff_specs, without what only names a run. Empty if one of the specs is not known.
std::vector<SpecDifference> changedKeys(const RunSeries& first, const RunSeries& second);
/// How many updates the two share: after the same number of samples.
std::size_t sharedUpdates(const RunSeries& first, const RunSeries& second);
/// The second run's losses less the first one's, where both report.
struct PairDifference {
  std::vector<double> samples;
  std::vector<double> differences;
};
PairDifference differenceOf(const RunSeries& first, const RunSeries& second);
/// Empty: they do not part.
std::optional<PairParting> partingOf(const RunSeries& first, const RunSeries& second);
/// What is said of it: "The losses part at update 41, ...".
QString partingSentence(const RunSeries& first, const RunSeries& second);
/// "Accumulation steps 4 → 16", one for each changed key.
QStringList changeTexts(const RunSeries& first, const RunSeries& second);

}  // namespace accrue::ui
