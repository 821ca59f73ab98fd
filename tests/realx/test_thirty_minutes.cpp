// SPDX-License-Identifier: GPL-3.0-or-later
// A class's thirty minutes on a real X server with a window manager and ranks that really train, with keys and clicks:
// a first lesson, the pool, a bug, a comparison, what it cost, and something to take home. Each minute is judged by
// what the studio's folders, files and title say; a picture of each lies beside the results of the tests.
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <map>

#include "accrue/run/events/lamp.h"
#include "accrue/run/export/bundle.h"
#include "accrue/run/lesson/run_facts.h"
#include "studio_on_x.h"
#include "support/places.h"
#include "support/test_program.h"

namespace test_thirty_minutes {

using namespace accrue;

namespace {

/// Returns the relative distance of two runs' losses after equal samples; 1 if they have no samples in common.
double distance(const RunFacts& left, const RunFacts& right) {
  std::map<std::int64_t, double> losses;
  for (const Update& update : left.updates) losses[update.samples] = update.loss;
  double most = -1.0;
  for (const Update& update : right.updates)
    if (const auto at = losses.find(update.samples); at != losses.end())
      most = std::max(most, std::abs(at->second - update.loss) / at->second);
  return most < 0.0 ? 1.0 : most;
}

}  // namespace

class TestThirtyMinutes : public QObject, private StudioOnX {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(begin("accrue-rank"));
    QVERIFY(startStudio({}));
  }

  /// A minute that failed leaves the next without what it needs.
  void init() {
    if (failed_) QSKIP("an earlier minute failed");
  }
  void cleanup() { failed_ = failed_ || QTest::currentTestFailed(); }

  void minute_0_everybody_starts_with_enter() {
    QVERIFY(
        press("Return", [this] { return x_.title(window_).startsWith(QStringLiteral("One weight, eight points")); }));
    QVERIFY(runs().isEmpty());
    // Typing can be undone.
    answer("accumulation.micro_batch=3");
    QVERIFY(waitUntil([this] { return x_.title(window_).contains(QLatin1Char('*')); }));
    QVERIFY(press("ctrl+z", [this] { return !x_.title(window_).contains(QLatin1Char('*')); }));
    keepPicture(QStringLiteral("minute-00"));
  }

  void minute_3_they_watch_it_learn() {
    const RunFacts facts = end(begun([this] { x_.key(QStringLiteral("F5")); }));
    QCOMPARE(facts.outcome, std::string("finished"));
    QCOMPARE(facts.updates.size(), std::size_t{1});
    QCOMPARE(QString::number(facts.updates.back().weights.at(0), 'f', 5), QStringLiteral("2.04000"));
    const QImage before = x_.picture();
    for (int larger = 0; larger < 2; ++larger) x_.key(QStringLiteral("ctrl+plus"));
    QVERIFY(waitUntil([&] { return x_.picture() != before && setting("view/textScale").toDouble() == 1.25; }));
    keepPicture(QStringLiteral("minute-03"));
  }

  void minute_8_they_fill_the_pool() {
    const QString run = begun([this] { x_.key(QStringLiteral("F11")); });
    QVERIFY(!run.isEmpty());
    const auto stands = [&](qint64 micro_step, const char* phase) {
      const QList<QJsonObject> changes = events(run, QStringLiteral("state"));
      return state(run) == QStringLiteral("paused") && x_.title(window_).contains(QStringLiteral("(Paused)")) &&
             changes.last().value(QStringLiteral("micro_step")).toInteger() == micro_step &&
             (!phase || changes.last().value(QStringLiteral("phase")).toString() == QLatin1String(phase));
    };
    QVERIFY(waitUntil([&] { return stands(0, nullptr); }));
    for (qint64 micro_step = 1; micro_step <= 4; ++micro_step)
      QVERIFY(press("F11", [&] { return stands(micro_step, "backward"); }));
    keepPicture(QStringLiteral("minute-08-full"));
    QVERIFY(press("F10", [&] { return stands(4, "reduce"); }));
    QVERIFY(press("F10", [&] { return stands(4, "unscale"); }));
    QVERIFY(events(run, QStringLiteral("update")).isEmpty());
    // The teacher's word is the program's: F1 explains it.
    QVERIFY(press("F1", [this] { return isInFront(QStringLiteral("Glossary")); }));
    keepPicture(QStringLiteral("minute-08-glossary"));
    QVERIFY(press("Escape", [this] { return isInFront(QStringLiteral("One weight")); }));
    x_.key(QStringLiteral("F8"));
    const RunFacts facts = end(run);
    QCOMPARE(facts.outcome, std::string("finished"));
    const RunFacts unpaused = read(runs().first());
    QCOMPARE(facts.weights_sha256, unpaused.weights_sha256);
  }

  void minute_14_they_break_it_and_mend_it() {
    x_.key(QStringLiteral("ctrl+shift+g"));
    const auto broken = [this] { return end(begun([this] { x_.key(QStringLiteral("Return")); })); };
    const RunFacts first = broken();
    QCOMPARE(first.spec.teaching.bug, Bug::mean_of_means);
    const ExactnessCheck* worst = worst_of(first.checks);
    QVERIFY(worst);
    QCOMPARE(light_of(*worst), LampLight::different);
    QCOMPARE(worst->reason, std::string("mean_of_means"));
    keepPicture(QStringLiteral("minute-14-bug"));
    // The laptop beside it shows the same digits.
    const RunFacts beside = broken();
    QCOMPARE(beside.weights_sha256, first.weights_sha256);
    QCOMPARE(beside.updates.back().loss, first.updates.back().loss);

    const RunFacts mended = end(begun([this] { x_.click(fix_x, fix_y); }));
    QCOMPARE(mended.spec.teaching.bug, Bug::none);
    worst = worst_of(mended.checks);
    QVERIFY(worst);
    QCOMPARE(light_of(*worst), LampLight::exact);
    QVERIFY(mended.updates.back().loss != first.updates.back().loss);
    keepPicture(QStringLiteral("minute-14-mended"));
  }

  void minute_20_they_compare() {
    // N = 4, 16 and 1 with a micro-batch of 4, 1 and 16: an update has the same 32 samples.
    QString run = begun([this] { choose("alt+l", "d"); });
    demos_.push_back(stopAfter(run, 20));
    QCOMPARE(demos_.back().spec.parallel.data, std::int64_t{2});
    for (const auto& [steps, micro_batch] : {std::pair{16, 1}, std::pair{1, 16}}) {
      answer("accumulation.steps=" + std::to_string(steps));
      answer("accumulation.micro_batch=" + std::to_string(micro_batch));
      run = begun([this] { x_.click(run_x, run_y); });
      demos_.push_back(stopAfter(run, 20));
      QCOMPARE(demos_.back().spec.accumulation.steps, std::int64_t{steps});
      QCOMPARE(demos_.back().spec.accumulation.micro_batch, std::int64_t{micro_batch});
      const double apart = distance(demos_.front(), demos_.back());
      QVERIFY2(apart < 1e-4, qPrintable(QString::number(apart)));
    }
    clickPlot();
    const QImage over_updates = x_.picture();
    x_.key(QStringLiteral("1"));
    QVERIFY(waitUntil([&] { return x_.picture() != over_updates; }));
    keepPicture(QStringLiteral("minute-20-micro-steps"));
    x_.key(QStringLiteral("3"));
    QVERIFY(waitUntil([&] { return x_.picture() != over_updates; }));
    keepPicture(QStringLiteral("minute-20-samples"));
  }

  void minute_26_they_ask_what_it_cost() {
    const QImage before = x_.picture();
    x_.click(planner_x, planner_y);
    QVERIFY(waitUntil([&] { return x_.picture() != before; }));
    keepPicture(QStringLiteral("minute-26"));
    // N - 1 of N reductions were saved: one an update, and the same bytes whatever N is.
    const auto per_update = [](const RunFacts& run) {
      return static_cast<double>(run.reduced_bytes) / static_cast<double>(run.updates.size());
    };
    for (const RunFacts& run : demos_) {
      QCOMPARE(run.reductions, std::ssize(run.updates));
      QCOMPARE(per_update(run), per_update(demos_.front()));
    }
    // A smaller micro-batch keeps less for its backward, as the bars say.
    QVERIFY(demos_[1].activation_bytes < demos_[0].activation_bytes);
    QVERIFY(demos_[0].activation_bytes < demos_[2].activation_bytes);
  }

  void minute_29_they_take_it_home() {
    const QString bundle = home_.filePath(QStringLiteral("take-home.accrue-bundle"));
    x_.key(QStringLiteral("alt+3"));  // the runs, all of them
    x_.key(QStringLiteral("ctrl+a"));
    QVERIFY(choose("alt+f", "b"));
    QVERIFY(waitUntil([this] { return isInFront(QStringLiteral("Export a bundle")); }));
    QVERIFY(press("Return", [this] { return isInFront(QStringLiteral("Export \u2014")); }));
    nameFile(bundle);
    QVERIFY(waitUntil([&] { return QFile::exists(bundle); }));

    const QString script = home_.filePath(QStringLiteral("take-home.py"));
    QVERIFY(choose("alt+f", "x"));
    QVERIFY(waitUntil([this] { return isInFront(QStringLiteral("Export to code")); }));
    keepPicture(QStringLiteral("minute-29"));
    QVERIFY(press("Return", [this] { return isInFront(QStringLiteral("Export \u2014")); }));
    nameFile(script);
    QVERIFY(waitUntil([&] { return QFile::exists(script); }));
    QVERIFY(press("Escape", [this] { return isInFront(QStringLiteral("Demo")); }));

    // At home the bundle holds every run as it was, and the set-up.
    QTemporaryDir at_home;
    const auto taken = import_bundle(bundle.toStdString(), at_home.path().toStdString());
    QVERIFY2(taken.has_value(), taken ? "" : taken.error().text().c_str());
    QCOMPARE(taken->runs.size(), static_cast<std::size_t>(runs().size()));
    QVERIFY(taken->spec.find("steps = 1") != std::string::npos);
    QFile code(script);
    QVERIFY(code.open(QIODevice::ReadOnly));
    const QByteArray text = code.readAll();
    QVERIFY(text.contains("import torch"));
    if (const QString python = QStandardPaths::findExecutable(QStringLiteral("python3")); !python.isEmpty()) {
      QProcess compiles;
      compiles.start(python, {QStringLiteral("-m"), QStringLiteral("py_compile"), script});
      QVERIFY(compiles.waitForFinished(20000) && compiles.exitCode() == 0);
    }

    x_.key(QStringLiteral("ctrl+q"));
    QVERIFY(studio_.waitForFinished(30000));
    QCOMPARE(studio_.exitCode(), 0);
    QCOMPARE(setting("plots/clock").toString(), QStringLiteral("sample"));
    for (const QString& run : runs()) QVERIFY(ranksAreGone(run));
  }

 private:
  // Places on the screen of 1366 x 768, with text a quarter larger.
  static constexpr int run_x = 35, run_y = 58;
  static constexpr int fix_x = 228, fix_y = 707;
  static constexpr int planner_x = 198, planner_y = 92;

  bool isInFront(const QString& title) const {
    const QString window = x_.tool({QStringLiteral("getactivewindow")});
    return !window.isEmpty() && x_.title(window).startsWith(title);
  }
  void nameFile(const QString& path) const {
    x_.key(QStringLiteral("ctrl+a"));
    x_.type(path);
    x_.key(QStringLiteral("Return"));
  }
  RunFacts read(const QString& run) {
    Result<RunFacts> facts = read_run_facts(run.toStdString());
    if (!facts) qWarning("%s", facts.error().text().c_str());
    return facts.value_or(RunFacts());
  }
  /// Waits for the end of a run.
  RunFacts end(const QString& run) {
    if (run.isEmpty()) qWarning("no run began");
    waitUntil([&] { return !events(run, QStringLiteral("run_finished")).isEmpty() && isAtRest(); });
    return read(run);
  }
  /// Stops a run that has made so many updates.
  RunFacts stopAfter(const QString& run, int updates) {
    waitUntil([&] { return events(run, QStringLiteral("update")).size() >= updates; }, 60000);
    press("shift+F5", [&] { return state(run) != QStringLiteral("running"); });
    return end(run);
  }

  std::vector<RunFacts> demos_;
  bool failed_ = false;
};

ACCRUE_TEST_MAIN(TestThirtyMinutes)

}  // namespace test_thirty_minutes
#include "test_thirty_minutes.moc"
