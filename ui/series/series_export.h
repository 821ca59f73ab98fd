// SPDX-License-Identifier: GPL-3.0-or-later
// Measured series as text: every point of every run on every clock, at full precision, independent of the plots.
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

/// Copy of the measurements of runs so far. It is made on the GUI thread at almost no cost, and may be written on any
/// thread while the runs continue.
class SeriesSnapshot {
 public:
  SeriesSnapshot(const QList<RunSeries*>& runs, double smoothingWeight);

  /// Called now and then with the progress from 0 to 1; false cancels.
  using GoOn = std::function<bool(double)>;
  /// Writes the columns run_id, run, metric, one per clock, value, smoothed, smoothing_weight, smoothing_formula; the
  /// first line names them. For values without smoothing, such as the learning rate, the last three are empty. UTF-8.
  /// Returns false if cancelled or if the device failed; the device has the error.
  bool writeCsv(QIODevice& out, const GoOn& goOn = {}) const;
  /// Writes the same as one JSON object: the smoothing formula, and each run with its differing settings and its series
  /// as arrays. A non-finite number is spelled "nan", "inf" or "-inf".
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
