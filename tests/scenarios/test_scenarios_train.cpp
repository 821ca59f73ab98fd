// SPDX-License-Identifier: Apache-2.0
// Trains every scenario that names weights, as a person would: accrue-run, real rank processes,
// final/model.safetensors.
#include <QtTest>

#include <cstring>

#include "scenarios/scenario.h"
#include "support/places.h"
#include "support/test_program.h"

namespace {

/// Every number of a float32 or float64 safetensors file, in file order.
QVector<double> weights_in(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray bytes = file.readAll();
  quint64 header = 0;
  std::memcpy(&header, bytes.constData(), sizeof header);
  const QJsonObject tensors = QJsonDocument::fromJson(bytes.mid(8, qsizetype(header))).object();
  QMap<qint64, QString> by_offset;
  for (const QString& name : tensors.keys())
    if (name != "__metadata__") by_offset[tensors[name]["data_offsets"][0].toInteger()] = name;
  QVector<double> weights;
  for (const QString& name : by_offset) {
    const QJsonObject tensor = tensors[name].toObject();
    const bool wide = tensor["dtype"].toString() == "F64";
    const char* data = bytes.constData() + 8 + header;
    for (qint64 at = tensor["data_offsets"][0].toInteger(); at < tensor["data_offsets"][1].toInteger();
         at += wide ? 8 : 4) {
      double value = 0;
      float narrow = 0;
      wide ? std::memcpy(&value, data + at, 8) : std::memcpy(&narrow, data + at, 4);
      weights << (wide ? value : double(narrow));
    }
  }
  return weights;
}

}  // namespace

class TestScenariosTrain : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void trains_to_the_weights_the_text_says_data() {
    QTest::addColumn<int>("index");
    QTest::addColumn<QString>("expected");
    cases_ = load_scenarios(accrue::test::sourcePath("tests/scenarios"));
    for (int i = 0; i < cases_.size(); ++i)
      for (const auto& [directive, expected] : cases_[i].expectations)
        if (directive == "weights") QTest::newRow(qPrintable(cases_[i].file + ": " + cases_[i].words)) << i << expected;
  }
  void trains_to_the_weights_the_text_says() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    QTemporaryDir folder;
    QFile spec(folder.filePath("case.accrue"));
    QVERIFY(spec.open(QIODevice::WriteOnly));
    spec.write(cases_[index].spec_toml.toUtf8());
    spec.close();
    QStringList arguments = {"run", spec.fileName(), "--out", folder.filePath("run")};
    for (const QString& set : cases_[index].sets) arguments << "--set" << set;
    QProcess process;
    process.start(accrue::test::programPath("accrue-run"), arguments);
    QVERIFY2(process.waitForFinished(60'000), "accrue-run did not end in a minute");
    QVERIFY2(process.exitCode() == 0, process.readAllStandardError());
    const QVector<double> weights = weights_in(folder.filePath("run/final/model.safetensors"));
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    const double tolerance = words.value(0).toDouble();
    QCOMPARE(weights.size(), words.size() - 1);
    for (int i = 0; i < weights.size(); ++i)
      QVERIFY2(std::abs(weights[i] - words[i + 1].toDouble()) <= tolerance,
               qPrintable(QString::number(weights[i], 'g', 17)));
  }

 private:
  QVector<ScenarioCase> cases_;
};

ACCRUE_TEST_MAIN(TestScenariosTrain)
#include "test_scenarios_train.moc"
