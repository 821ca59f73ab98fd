// SPDX-License-Identifier: Apache-2.0
// Trains every scenario that names weights, losses, losses of one rank, branches, what coincides or parts, or what is
// learned, as a person would: accrue-run and real rank processes.
#include <QCryptographicHash>
#include <QDirIterator>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

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

/// Runs accrue-run and returns its standard output. Fails the test if it fails.
QByteArray run_program(const QStringList& arguments) {
  QProcess process;
  process.start(accrue::test::programPath("accrue-run"), arguments);
  if (!process.waitForFinished(120'000)) qFatal("accrue-run %s did not end", qPrintable(arguments.join(' ')));
  if (process.exitCode() != 0)
    qFatal("accrue-run %s: %s", qPrintable(arguments.join(' ')), process.readAllStandardError().constData());
  return process.readAllStandardOutput();
}

QStringList with_sets(QStringList arguments, const QStringList& sets) {
  for (const QString& set : sets) arguments << "--set" << set;
  return arguments;
}

QJsonObject shown(const QString& folder) {
  return QJsonDocument::fromJson(run_program({"show", folder, "--json"})).object();
}

/// By update, or by samples.
QMap<int, double> losses_in(const QJsonObject& shown, const char* clock = "update") {
  QMap<int, double> losses;
  const QJsonArray places = shown["curve"][clock].toArray(), values = shown["curve"]["loss"].toArray();
  for (int i = 0; i < places.size(); ++i) losses[places[i].toInt()] = values[i].toDouble();
  return losses;
}

/// Every file of a folder with its hash.
QMap<QString, QByteArray> contents_of(const QString& folder) {
  QMap<QString, QByteArray> contents;
  QDirIterator files(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories);
  while (files.hasNext()) {
    QFile file(files.next());
    if (!file.open(QIODevice::ReadOnly)) qFatal("cannot read %s", qPrintable(file.fileName()));
    contents[file.fileName()] = QCryptographicHash::hash(file.readAll(), QCryptographicHash::Sha256);
  }
  return contents;
}

/// Returns the difference; empty if they agree.
QString difference(const QMap<int, double>& losses, const QMap<int, double>& expected, double tolerance) {
  for (auto each = losses.begin(); each != losses.end(); ++each) {
    const double other = expected.value(each.key(), NAN);
    if (!(std::abs(each.value() - other) <= tolerance * std::abs(other)))
      return QString("update %1: %2, expected %3").arg(each.key()).arg(each.value(), 0, 'g', 17).arg(other, 0, 'g', 17);
  }
  return losses.isEmpty() ? "there are no losses" : QString();
}

}  // namespace

class TestScenariosTrain : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void trains_to_the_weights_the_text_says_data() { add_rows("weights"); }
  void trains_to_the_weights_the_text_says() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    QTemporaryDir folder;
    const QStringList run = {"run", write_case(cases_[index], folder), "--out", folder.filePath("run")};
    run_program(with_sets(run, cases_[index].sets));
    const QVector<double> weights = weights_in(folder.filePath("run/final/model.safetensors"));
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    const double tolerance = words.value(0).toDouble();
    QCOMPARE(weights.size(), words.size() - 1);
    for (int i = 0; i < weights.size(); ++i)
      QVERIFY2(std::abs(weights[i] - words[i + 1].toDouble()) <= tolerance,
               qPrintable(QString::number(weights[i], 'g', 17)));
  }

  void updates_report_the_losses_the_text_says_data() { add_rows("losses"); }
  void updates_report_the_losses_the_text_says() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    QTemporaryDir folder;
    const QStringList run = {"run", write_case(cases_[index], folder), "--quiet", "--out", folder.filePath("run")};
    run_program(with_sets(run, cases_[index].sets));
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    QMap<int, double> wanted;
    for (int update = 1; update < words.size(); ++update) wanted[update] = words[update].toDouble();
    const QMap<int, double> losses = losses_in(shown(folder.filePath("run")));
    QCOMPARE(losses.keys(), wanted.keys());
    const QString apart = difference(losses, wanted, words.value(0).toDouble());
    QVERIFY2(apart.isEmpty(), qPrintable(apart));
  }

  void several_ranks_have_the_losses_of_one_data() { add_rows("one_rank"); }
  void several_ranks_have_the_losses_of_one() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    const ScenarioCase& scenario = cases_[index];
    QTemporaryDir folder;
    const QString spec = write_case(scenario, folder), several = folder.filePath("several"),
                  one = folder.filePath("one");
    run_program(with_sets({"run", spec, "--quiet", "--out", several}, scenario.sets));
    const auto plan = QJsonDocument::fromJson(run_program(with_sets({"plan", spec, "--json"}, scenario.sets))).object();
    const qint64 steps = plan["steps"].toInteger() * plan["data_ranks"].toInteger();
    run_program(with_sets({"run", spec, "--quiet", "--out", one}, {QString("accumulation.steps=%1").arg(steps)}));
    const QJsonObject found = shown(several);
    const QMap<int, double> expected_losses = losses_in(shown(one));
    QCOMPARE(losses_in(found).keys(), expected_losses.keys());
    const QString apart = difference(losses_in(found), expected_losses, expected.toDouble());
    QVERIFY2(apart.isEmpty(), qPrintable(apart));
    const QJsonArray figures = found["plan_check"].toArray();
    QVERIFY(figures.size() >= 5);
    for (const QJsonValue& each : figures)
      QVERIFY2(std::abs(each["deviation_percent"].toDouble()) < 1.0,
               QJsonDocument(each.toObject()).toJson(QJsonDocument::Compact));
  }

  void curves_coincide_over_samples_data() { add_rows("coincides"); }
  void curves_coincide_over_samples() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    const ScenarioCase& scenario = cases_[index];
    QTemporaryDir folder;
    const QString spec = write_case(scenario, folder);
    const QMap<int, double> losses = by_samples(spec, scenario.sets);
    const QMap<int, double> others = by_samples(spec, scenario.sets + words.mid(1));
    QCOMPARE(others.keys(), losses.keys());
    const QString apart = difference(others, losses, words[0].toDouble());
    QVERIFY2(apart.isEmpty(), qPrintable(apart));
  }

  void curves_part_over_samples_data() { add_rows("parts"); }
  void curves_part_over_samples() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    const ScenarioCase& scenario = cases_[index];
    QTemporaryDir folder;
    const QString spec = write_case(scenario, folder);
    const bool other_file = words.value(1).endsWith(".accrue");
    const QMap<int, double> losses = by_samples(spec, scenario.sets);
    const QMap<int, double> others = other_file
                                         ? by_samples(accrue::test::sourcePath(qPrintable(words[1])), words.mid(2))
                                         : by_samples(spec, scenario.sets + words.mid(1));
    QVERIFY(!others.isEmpty());
    for (auto each = others.begin(); each != others.end(); ++each) {
      QVERIFY2(losses.contains(each.key()), qPrintable(QString::number(each.key())));
      const double loss = losses[each.key()];
      QVERIFY2(std::abs(each.value() - loss) > words[0].toDouble() * std::abs(loss),
               qPrintable(QString("%1 samples: %2 and %3").arg(each.key()).arg(loss).arg(each.value())));
    }
  }

  void a_spec_learns_in_time_data() { add_rows("learns"); }
  void a_spec_learns_in_time() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    const ScenarioCase& scenario = cases_[index];
    QTemporaryDir folder;
    const QString run = folder.filePath("run");
    QElapsedTimer clock;
    clock.start();
    run_program(with_sets({"run", write_case(scenario, folder), "--quiet", "--out", run}, scenario.sets));
    QVERIFY2(clock.elapsed() < words[0].toInt() * 1000, qPrintable(QString("%1 ms").arg(clock.elapsed())));
    const QMap<int, double> losses = losses_in(shown(run));
    QVERIFY2(losses.last() < words[1].toDouble(), qPrintable(QString::number(losses.last(), 'g', 17)));
  }

  void a_branch_goes_on_as_the_run_does_data() { add_rows("branch"); }
  void a_branch_goes_on_as_the_run_does() {
    QFETCH(int, index);
    QFETCH(QString, expected);
    const ScenarioCase& scenario = cases_[index];
    const QStringList words = expected.split(' ', Qt::SkipEmptyParts);
    QTemporaryDir folder;
    const QString run = folder.filePath("run"), branch = folder.filePath("branch");
    run_program(with_sets({"run", write_case(scenario, folder), "--quiet", "--out", run}, scenario.sets));
    const auto before = contents_of(run);
    const QStringList from = {"resume", run, "--quiet", "--from", "step-" + words[1], "--out", branch};
    run_program(with_sets(from, words.mid(2)));
    QCOMPARE(contents_of(run), before);
    const QJsonObject original = shown(run), found = shown(branch);
    QCOMPARE(found["branched_from"], original["run_id"]);
    const QMap<int, double> losses = losses_in(found);
    QCOMPARE(losses.firstKey(), words[1].toInt() + 1);
    QCOMPARE(losses.lastKey(), losses_in(original).lastKey());
    const QString apart = difference(losses, losses_in(original), words[0].toDouble());
    QVERIFY2(apart.isEmpty(), qPrintable(apart));
  }

  void a_branch_is_refused_before_anything_is_made() {
    cases_ = load_scenarios(accrue::test::sourcePath("tests/scenarios"));
    const auto points = std::find_if(cases_.begin(), cases_.end(),
                                     [](const ScenarioCase& each) { return each.file == "eight_points.run"; });
    QTemporaryDir folder;
    const QString run = folder.filePath("run"), taken = folder.filePath("taken"), branch = folder.filePath("branch");
    run_program({"run", write_case(*points, folder), "--quiet", "--out", run});
    QVERIFY(QDir().mkpath(taken + "/something"));
    const auto refused = [](const QStringList& arguments, const QString& words) {
      QProcess process;
      process.start(accrue::test::programPath("accrue-run"), arguments);
      QVERIFY(process.waitForFinished(60'000));
      const QString said = QString::fromUtf8(process.readAllStandardError());
      QVERIFY2(process.exitCode() == 2 && said.contains(words), qPrintable(said));
      QVERIFY2(!said.contains("samples per update"), qPrintable(said));
    };
    const auto before = contents_of(run);
    refused({"resume", run, "--out", branch, "--set", "model.outputs=2"}, "model.outputs: cannot change in a branch");
    refused({"resume", run, "--out", branch, "--set", "run.epochs=x"}, "run.epochs");
    refused({"resume", run, "--out", branch, "--from", "step-7"}, "is not a checkpoint of this run");
    refused({"resume", run, "--out", branch, "--set", "run.epochs=1"}, "the branch would end after update 1");
    refused({"resume", run, "--set", "run.epochs=2"}, "--out");
    QVERIFY(!QFile::exists(branch));
    refused({"resume", run, "--out", taken, "--set", "run.epochs=2"}, "the folder is not empty");
    refused({"resume", run, "--out", taken, "--set", "run.epochs=1"}, "the folder is not empty");
    refused({"resume", run, "--out", run + "/inside", "--set", "run.epochs=2"}, "which is only read");
    refused({"resume", run}, "resume " + run + " --out NEW --set run.epochs=");
    refused({"resume", run, "--from", "step-1"}, "resume " + run + " --out NEW --set run.epochs=");
    QCOMPARE(QDir(taken).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot), QStringList("something"));
    QCOMPARE(contents_of(run), before);
  }

 private:
  /// A row for each such directive of each case.
  void add_rows(const QString& wanted) {
    QTest::addColumn<int>("index");
    QTest::addColumn<QString>("expected");
    cases_ = load_scenarios(accrue::test::sourcePath("tests/scenarios"));
    for (int i = 0; i < cases_.size(); ++i)
      for (const auto& [directive, expected] : cases_[i].expectations)
        if (directive == wanted)
          QTest::newRow(qPrintable(cases_[i].file + ": " + cases_[i].words + ": " + expected)) << i << expected;
  }

  /// The spec's path.
  static QString write_case(const ScenarioCase& scenario, const QTemporaryDir& folder) {
    if (!scenario.spec_file.isEmpty()) return scenario.spec_file;
    QFile spec(folder.filePath("case.accrue"));
    if (!spec.open(QIODevice::WriteOnly)) qFatal("cannot write the spec");
    spec.write(scenario.spec_toml.toUtf8());
    return spec.fileName();
  }

  /// The losses of a run by its samples; one that several lines compare is trained once.
  QMap<int, double> by_samples(const QString& spec, const QStringList& sets) {
    QMap<int, double>& losses = trained_[{spec, sets}];
    if (losses.isEmpty()) {
      QTemporaryDir folder;
      const QString run = folder.filePath("run");
      run_program(with_sets({"run", spec, "--quiet", "--out", run}, sets));
      losses = losses_in(shown(run), "samples");
    }
    return losses;
  }

  QVector<ScenarioCase> cases_;
  QMap<std::pair<QString, QStringList>, QMap<int, double>> trained_;
};

ACCRUE_TEST_MAIN(TestScenariosTrain)
#include "test_scenarios_train.moc"
