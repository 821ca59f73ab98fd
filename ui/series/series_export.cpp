// SPDX-License-Identifier: GPL-3.0-or-later
#include "series_export.h"

#include <QIODevice>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLocale>
#include <cmath>
#include <vector>

#include "accrue/run/base/non_finite.h"
#include "kit/no_value.h"
#include "points/smoothing.h"
#include "run_name.h"

namespace accrue::ui {

namespace {

/// Empty if nothing was measured.
QByteArray number(double value) {
  if (!isMeasured(value)) return {};
  if (!std::isfinite(value)) return QByteArray::fromStdString(std::string(non_finite_name(value)));
  return QByteArray::number(value, 'g', QLocale::FloatingPointShortest);
}

QByteArray quoted(const QString& text) {
  QByteArray utf8 = text.toUtf8();
  if (!utf8.contains(',') && !utf8.contains('"') && !utf8.contains('\n') && !utf8.contains('\r')) return utf8;
  utf8.replace('"', "\"\"");
  return '"' + utf8 + '"';
}

QByteArray jsonText(const QString& text) {
  const QByteArray array = QJsonDocument(QJsonArray{text}).toJson(QJsonDocument::Compact);
  return array.mid(1, array.size() - 2);
}

QByteArray jsonNumber(double value) {
  if (!isMeasured(value)) return "null";
  return std::isfinite(value) ? number(value) : '"' + number(value) + '"';
}

std::vector<NamedSpec> namedSpecs(const QList<RunSeries*>& runs) {
  std::vector<NamedSpec> named;
  for (const RunSeries* run : runs) named.push_back({run->name(), run->spec() ? &*run->spec() : nullptr});
  return named;
}

}  // namespace

/// Writer of the text in slices; checks for cancellation after each.
class SeriesSnapshot::Writer {
 public:
  Writer(QIODevice& out, const GoOn& goOn, std::size_t points) : out_(out), goOn_(goOn), points_(points) {}

  Writer& operator<<(const QByteArray& text) { return text_ += text, *this; }
  Writer& operator<<(const char* text) { return text_ += text, *this; }
  /// Counts further points. Returns false if continuing is useless.
  bool passed(std::size_t points) {
    done_ += points;
    return text_.size() < sliceBytes || flush();
  }
  bool flush() {
    good_ = good_ && out_.write(text_) == text_.size() &&
            (!goOn_ || goOn_(points_ == 0 ? 1.0 : static_cast<double>(done_) / static_cast<double>(points_)));
    text_.clear();
    return good_;
  }
  bool good() const { return good_; }

 private:
  static constexpr qsizetype sliceBytes = 1 << 18;

  QIODevice& out_;
  const GoOn& goOn_;
  QByteArray text_;
  std::size_t points_;
  std::size_t done_ = 0;
  bool good_ = true;
};

SeriesSnapshot::SeriesSnapshot(const QList<RunSeries*>& runs, double smoothingWeight) : weight_(smoothingWeight) {
  const std::vector<NamedSpec> named = namedSpecs(runs);
  const QStringList names = distinctNames(named);
  std::vector<const RunSpec*> specs;
  for (const NamedSpec& each : named) specs.push_back(each.spec);
  const std::vector<std::string> keys = differingKeys(specs);
  for (qsizetype r = 0; r < runs.size(); ++r) {
    Run run{.id = runs[r]->id(), .name = names[r], .differing = {}, .series = {}};
    if (const RunSpec* spec = specs[static_cast<std::size_t>(r)])
      for (const std::string& key : keys)
        run.differing.emplace_back(QString::fromStdString(key), settingValue(*spec, key));
    const auto take = [&](const QByteArray& key, const SeriesStore& store, bool smoothed) {
      run.series.push_back({key, store.values(), store.clocks(), smoothed});
      points_ += store.size();
    };
    // These have no noise to smooth.
    const auto isExact = [](Metric metric) { return metric == Metric::learningRate || metric == Metric::lossScale; };
    for (const Metric metric : allMetrics)
      take(metricKey(metric), runs[r]->series(metric), weight_ > 0.0 && !isExact(metric));
    for (const auto& [name, part] : runs[r]->lossParts()) take("loss." + name.toUtf8(), part->values, weight_ > 0.0);
    for (const auto& [name, part] : runs[r]->evaluationParts())
      take("evaluation_loss." + name.toUtf8(), part->values, weight_ > 0.0);
    for (const auto& [name, scalar] : runs[r]->scalars())
      take("scalar." + name.toUtf8(), scalar->values, weight_ > 0.0);
    for (const auto& [name, scalar] : runs[r]->evaluationScalars())
      take("evaluation_scalar." + name.toUtf8(), scalar->values, weight_ > 0.0);
    take("skipped_update", runs[r]->skippedUpdates(), false);
    for (const auto& [rank, memory] : runs[r]->memory())
      take("memory_mib.rank" + QByteArray::number(qlonglong(rank)), memory->mebibytes, false);
    runs_.push_back(std::move(run));
  }
}

bool SeriesSnapshot::writeCsv(QIODevice& out, const GoOn& goOn) const {
  Writer writer(out, goOn, points_);
  writer << "run_id,run,metric";
  for (const Clock clock : allClocks) writer << "," << clockKey(clock).toLatin1();
  writer << ",value,smoothed,smoothing_weight,smoothing_formula\r\n";
  const QByteArray formula = quoted(smoothingFormula(weight_));
  for (const Run& run : runs_) {
    const QByteArray names = quoted(run.id) + ',' + quoted(run.name) + ',';
    for (const Series& series : run.series) {
      DebiasedMean mean(weight_);
      const QByteArray metric = quoted(QString::fromUtf8(series.key));
      for (std::size_t i = 0; i < series.values.size(); ++i) {
        writer << names << metric;
        for (const Clock clock : allClocks) writer << "," << number(series.clocks[clock][i]);
        writer << "," << number(series.values[i]) << ",";
        if (series.smoothed) writer << number(mean.next(series.values[i]));
        writer << ",";
        if (series.smoothed) writer << number(weight_);
        writer << ",";
        if (series.smoothed) writer << formula;
        writer << "\r\n";
        if (!writer.passed(1)) return false;
      }
    }
  }
  return writer.flush();
}

void SeriesSnapshot::appendSeries(Writer& writer, const Series& series) const {
  const std::size_t size = series.values.size();
  const auto append = [&](const QByteArray& key, std::size_t points, const auto& at) {
    writer << "\"" << key << "\":[";
    for (std::size_t i = 0; i < size && writer.good(); ++i) {
      if (i > 0) writer << ",";
      writer << jsonNumber(at(i));
      writer.passed(points);
    }
    writer << "]";
  };
  writer << "{";
  for (const Clock clock : allClocks) {
    append(clockKey(clock).toLatin1(), 0, [&](std::size_t i) { return series.clocks[clock][i]; });
    writer << ",";
  }
  append("value", 1, [&](std::size_t i) { return series.values[i]; });
  if (series.smoothed) {
    DebiasedMean mean(weight_);
    writer << ",";
    append("smoothed", 0, [&](std::size_t i) { return mean.next(series.values[i]); });
  }
  writer << "}";
}

bool SeriesSnapshot::writeJson(QIODevice& out, const GoOn& goOn) const {
  Writer writer(out, goOn, points_);
  writer << "{\"accrue_series\":1,\"smoothing\":";
  if (weight_ > 0.0)
    writer << "{\"weight\":" << number(weight_) << ",\"formula\":" << jsonText(smoothingFormula(weight_)) << "}";
  else
    writer << "null";
  writer << ",\"runs\":[";
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    writer << (r > 0 ? ",\n" : "\n") << "{\"id\":" << jsonText(run.id) << ",\"name\":" << jsonText(run.name)
           << ",\"differing\":{";
    for (std::size_t k = 0; k < run.differing.size(); ++k)
      writer << (k > 0 ? "," : "") << jsonText(run.differing[k].first) << ":" << jsonText(run.differing[k].second);
    writer << "},\"series\":{";
    bool first = true;
    for (const Series& series : run.series) {
      if (series.values.empty()) continue;
      writer << (first ? "\n" : ",\n") << jsonText(QString::fromUtf8(series.key)) << ":";
      first = false;
      appendSeries(writer, series);
    }
    writer << "}}";
  }
  writer << "\n]}\n";
  return writer.flush();
}

}  // namespace accrue::ui
