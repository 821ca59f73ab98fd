// SPDX-License-Identifier: GPL-3.0-or-later
// Comparison of two runs: differing keys, and the point at which their losses part, at equal samples or updates.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "accrue/run/fields/spec_fields.h"
#include "accrue/run/record/curve_comparison.h"
#include "kit/clock.h"

namespace accrue::ui {

class RunSeries;

/// Like diff_specs, without names of a run. Empty if one of the specs is unknown.
std::vector<SpecDifference> changedKeys(const RunSeries& first, const RunSeries& second);
/// Compares their losses at common points.
PairComparison comparisonOf(const RunSeries& first, const RunSeries& second);
/// Plot clock of a comparison's clock.
Clock plotClock(ComparisonClock clock);
/// Position of the first run, on every clock, from which the losses differ by more than noise. Empty: they do not part.
std::optional<ClockPoint> partingOf(const RunSeries& first, const PairComparison& compared);
/// Sentence about it: "The losses part at update 41, ...".
QString partingSentence(const RunSeries& first, const RunSeries& second, const PairComparison& compared);
/// "Accumulation steps 4 → 16", one for each changed key.
QStringList changeTexts(const RunSeries& first, const RunSeries& second);

}  // namespace accrue::ui
