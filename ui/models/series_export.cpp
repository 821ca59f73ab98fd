// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/series_export.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QLocale>
#include <cmath>
#include <vector>

#include "models/run_name.h"
#include "models/smoothing.h"

namespace accrue::ui {

namespace {

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

QByteArray jsonText(const QString& text) {
  const QByteArray array = QJsonDocument(QJsonArray{text}).toJson(QJsonDocument::Compact);
  return array.mid(1, array.size() - 2);
}

QByteArray jsonNumber(double value) {
  return std::isfinite(value) ? number(value) : '"' + number(value) + '"';
}

/// A series and what files call it.
struct KeyedSeries {
  QByteArray key;
  const SeriesStore* store = nullptr;
  bool smoothed = false;
};

std::vector<KeyedSeries> seriesOf(const RunSeries& run, double weight) {
  std::vector<KeyedSeries> all;
  for (const Metric metric : allMetrics)
    all.push_back({metricKey(metric), &run.series(metric), weight > 0.0 && metric != Metric::learningRate});
  for (const auto& [rank, memory] : run.memory())
    all.push_back({"memory_mib.rank" + QByteArray::number(qlonglong(rank)), &memory->mebibytes, false});
  return all;
}

std::vector<NamedSpec> namedSpecs(const QList<RunSeries*>& runs) {
  std::vector<NamedSpec> named;
  for (const RunSeries* run : runs) named.push_back({run->name(), run->spec() ? &*run->spec() : nullptr});
  return named;
}

/// `"key":[...]` of count numbers.
template <typename At>
void appendArray(QByteArray& out, const char* key, std::size_t count, const At& at) {
  out += '"';
  out += key;
  out += "\":[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += jsonNumber(at(i));
  }
  out += ']';
}

void appendSeries(QByteArray& out, const KeyedSeries& series, double weight) {
  const SeriesStore& store = *series.store;
  out += "{";
  for (const Clock clock : allClocks) {
    const ClockColumn& column = store.clock(clock);
    appendArray(out, clockKey(clock).toLatin1(), store.size(), [&](std::size_t i) { return column[i]; });
    out += ',';
  }
  appendArray(out, "value", store.size(), [&](std::size_t i) { return store.value(i); });
  if (series.smoothed) {
    const SmoothedSeries smoothed(store, weight);
    out += ',';
    appendArray(out, "smoothed", store.size(), [&](std::size_t i) { return smoothed.value(i); });
  }
  out += '}';
}

}  // namespace

QByteArray seriesCsv(const QList<RunSeries*>& runs, double smoothingWeight) {
  QByteArray out;
  out += "run_id,run,metric";
  for (const Clock clock : allClocks) out += ',' + clockKey(clock).toLatin1();
  out += ",value,smoothed,smoothing_weight\r\n";
  const QStringList names = distinctNames(namedSpecs(runs));
  for (qsizetype r = 0; r < runs.size(); ++r) {
    const QByteArray run = quoted(runs[r]->id()) + ',' + quoted(names[r]);
    for (const KeyedSeries& series : seriesOf(*runs[r], smoothingWeight)) {
      const SeriesStore& store = *series.store;
      const SmoothedSeries smoothed(store, series.smoothed ? smoothingWeight : 0.0);
      for (std::size_t i = 0; i < store.size(); ++i) {
        out += run + ',' + series.key;
        for (const Clock clock : allClocks) out += ',' + number(store.clock(clock)[i]);
        out += ',' + number(store.value(i)) + ',';
        if (series.smoothed) out += number(smoothed.value(i));
        out += ',';
        if (series.smoothed) out += number(smoothingWeight);
        out += "\r\n";
      }
    }
  }
  return out;
}

QByteArray seriesJson(const QList<RunSeries*>& runs, double smoothingWeight) {
  const std::vector<NamedSpec> named = namedSpecs(runs);
  const QStringList names = distinctNames(named);
  std::vector<const RunSpec*> specs;
  for (const NamedSpec& each : named) specs.push_back(each.spec);
  const std::vector<std::string> keys = differingKeys(specs);
  QByteArray out = "{\"accrue_series\":1,\"smoothing\":";
  if (smoothingWeight > 0.0)
    out +=
        "{\"weight\":" + number(smoothingWeight) + ",\"formula\":" + jsonText(smoothingFormula(smoothingWeight)) + '}';
  else
    out += "null";
  out += ",\"runs\":[";
  for (qsizetype r = 0; r < runs.size(); ++r) {
    if (r > 0) out += ",";
    out += "\n{\"id\":" + jsonText(runs[r]->id()) + ",\"name\":" + jsonText(names[r]) + ",\"differing\":{";
    const RunSpec* spec = named[static_cast<std::size_t>(r)].spec;
    for (std::size_t k = 0; spec != nullptr && k < keys.size(); ++k) {
      if (k > 0) out += ',';
      out += jsonText(QString::fromStdString(keys[k])) + ':' + jsonText(settingValue(*spec, keys[k]));
    }
    out += "},\"series\":{";
    bool first = true;
    for (const KeyedSeries& series : seriesOf(*runs[r], smoothingWeight)) {
      if (series.store->empty()) continue;
      out += (first ? "\n\"" : ",\n\"") + series.key + "\":";
      first = false;
      appendSeries(out, series, smoothingWeight);
    }
    out += "}}";
  }
  out += "\n]}\n";
  return out;
}

}  // namespace accrue::ui
