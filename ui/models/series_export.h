// SPDX-License-Identifier: GPL-3.0-or-later
// Measured series as text: every point of every run on every clock, at full precision, whatever a plot shows.
#pragma once

#include <QByteArray>
#include <QList>

#include "models/run_series.h"

namespace accrue::ui {

/// Columns run_id, run, metric, one per clock, value, smoothed, smoothing_weight; the first line names them. Where a
/// value is not smoothed, as of the learning rate, the last two are empty.
QByteArray seriesCsv(const QList<RunSeries*>& runs, double smoothingWeight);
/// The same as one JSON object, a run with its settings that differ and its series as arrays. A number that is not
/// finite is spelled "nan", "inf" or "-inf".
QByteArray seriesJson(const QList<RunSeries*>& runs, double smoothingWeight);

}  // namespace accrue::ui
