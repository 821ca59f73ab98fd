// SPDX-License-Identifier: GPL-3.0-or-later
// Measured series as text: every point of every run on every clock, at full precision, whatever a plot shows.
#pragma once

#include <QByteArray>
#include <QList>
#include <QString>
#include <functional>
#include <utility>
#include <vector>

#include "run_series.h"

class QIODevice;

namespace accrue::ui {

/// What runs have measured up to now. It is made on the GUI thread at next to no cost, and may be written on any, while
/// the runs go on.
class SeriesSnapshot {
 public:
  SeriesSnapshot(const QList<RunSeries*>& runs, double smoothingWeight);

  /// Asked now and then with how much is done, from 0 to 1; false gives it up.
  using GoOn = std::function<bool(double)>;
  /// Columns run_id, run, metric, one per clock, value, smoothed, smoothing_weight, smoothing_formula; the first line
  /// names them. Where a value is not smoothed, as of the learning rate, the last three are empty. UTF-8. False: given
  /// up, or the device took not all; it says why.
  bool writeCsv(QIODevice& out, const GoOn& goOn = {}) const;
  /// The same as one JSON object, with the formula of the smoothing, a run with its settings that differ and its series
  /// as arrays. A number that is not finite is spelled "nan", "inf" or "-inf".
  bool writeJson(QIODevice& out, const GoOn& goOn = {}) const;

 private:
  struct Series {
    QByteArray key;
    Chunked<double> values;
    ClockTable clocks;
    bool smoothed = false;
  };
  struct Run {
    QString id;
    QString name;
    std::vector<std::pair<QString, QString>> differing;  ///< key, value
    std::vector<Series> series;
  };
  class Writer;

  void appendSeries(Writer& writer, const Series& series) const;

  std::vector<Run> runs_;
  double weight_;
  std::size_t points_ = 0;
};

}  // namespace accrue::ui
