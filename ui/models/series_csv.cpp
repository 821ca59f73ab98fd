// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/series_csv.h"

#include <QLocale>

#include <array>
#include <cmath>
#include <utility>

#include "models/smoothing.h"

namespace accrue::ui {

namespace {

constexpr std::array<std::pair<Metric, const char*>, 5> metrics = {{{Metric::microLoss, "micro_loss"},
                                                                    {Metric::updateLoss, "loss"},
                                                                    {Metric::evaluationLoss, "evaluation_loss"},
                                                                    {Metric::learningRate, "learning_rate"},
                                                                    {Metric::gradNorm, "grad_norm"}}};

QByteArray number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return QByteArray::number(value, 'g', QLocale::FloatingPointShortest);
}

QByteArray quoted(const QString& text) {
  QByteArray utf8 = text.toUtf8();
  if (!utf8.contains(',') && !utf8.contains('"') && !utf8.contains('\n')) return utf8;
  utf8.replace('"', "\"\"");
  return '"' + utf8 + '"';
}

}  // namespace

QByteArray seriesCsv(const QList<RunSeries*>& runs, double smoothingWeight) {
  QByteArray out;
  if (smoothingWeight > 0.0) out += "# smoothed: " + smoothingFormula(smoothingWeight).toUtf8() + "\r\n";
  out += "run,metric";
  for (const Clock clock : allClocks) out += ',' + clockKey(clock).toLatin1();
  out += ",value,smoothed\r\n";
  for (const RunSeries* run : runs) {
    const QByteArray name = quoted(run->name());
    for (const auto& [metric, key] : metrics) {
      const SeriesStore& store = run->series(metric);
      const bool smooth = smoothingWeight > 0.0 && metric != Metric::learningRate;
      const SmoothedSeries smoothed(store, smooth ? smoothingWeight : 0.0);
      for (std::size_t i = 0; i < store.size(); ++i) {
        out += name + ',' + key;
        for (const Clock clock : allClocks) out += ',' + number(store.clock(clock)[i]);
        out += ',' + number(store.value(i)) + ',';
        if (smooth) out += number(smoothed.value(i));
        out += "\r\n";
      }
    }
  }
  return out;
}

}  // namespace accrue::ui
