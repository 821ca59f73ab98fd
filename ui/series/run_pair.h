// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs side by side: which keys differ, and where their losses part, at equal samples or updates.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>
#include <vector>

#include "accrue/run/curve_comparison.h"
#include "accrue/run/spec_fields.h"
#include "kit/clock.h"

namespace accrue::ui {

class RunSeries;

/// As diff_specs, without what only names a run. Empty if one of the specs is not known.
std::vector<SpecDifference> changedKeys(const RunSeries& first, const RunSeries& second);
/// Their losses where both report.
PairComparison comparisonOf(const RunSeries& first, const RunSeries& second);
/// What a plot calls the clock of a comparison.
Clock plotClock(ComparisonClock clock);
/// The position of the first run, on every clock, from which the losses differ by more than noise. Empty: they do not
/// part.
std::optional<ClockPoint> partingOf(const RunSeries& first, const PairComparison& compared);
/// What is said of it: "The losses part at update 41, ...".
QString partingSentence(const RunSeries& first, const RunSeries& second, const PairComparison& compared);
/// "Accumulation steps 4 → 16", one for each changed key.
QStringList changeTexts(const RunSeries& first, const RunSeries& second);

}  // namespace accrue::ui
