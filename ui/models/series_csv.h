// SPDX-License-Identifier: GPL-3.0-or-later
// The full data behind a picture as CSV: every stored point on every clock, unreduced, with the smoothed column and its
// formula in the first lines.
#pragma once

#include <QByteArray>
#include <QList>

#include "models/run_series.h"

namespace accrue::ui {

/// UTF-8, RFC 4180, C locale; lines that begin with # are comments. Columns: run, metric, the clocks, value, smoothed.
QByteArray seriesCsv(const QList<RunSeries*>& runs, double smoothingWeight);

}  // namespace accrue::ui
