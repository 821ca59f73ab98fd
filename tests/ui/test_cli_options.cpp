// SPDX-License-Identifier: GPL-3.0-or-later
// The studio's command line, as a user starts it, over fake ranks and without a display.
#include <QDir>
#include <QFile>
#include <QImage>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "support/programs.h"
#include "support/test_program.h"

using accrue::test::Outcome;

class TestCliOptions : public QObject {
  Q_OBJECT
  QTemporaryDir home_;

  static Outcome start(const QStringList& arguments, const char* script = "micro_ms=1") {
    qputenv("ACCRUE_FAKE_RANK", script);
    return accrue::test::Program(accrue::test::programPath("accrue"), arguments).finish(90000);
  }

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) qunsetenv(name);
    for (const char* name : {"HOME", "XDG_RUNTIME_DIR"}) qputenv(name, home_.path().toUtf8());
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("ACCRUE_RANK_PROGRAM", accrue::test::programPath("accrue-fake-rank").toUtf8());
  }

  void version_and_paths_print_and_end() {
    const Outcome version = start({QStringLiteral("--version")});
    QCOMPARE(version.status, 0);
    QVERIFY(version.out.contains(QRegularExpression(QStringLiteral("\\d+\\.\\d+\\.\\d+"))));
    const Outcome paths = start({QStringLiteral("--paths")});
    QCOMPARE(paths.status, 0);
    QVERIFY2(paths.out.contains(QStringLiteral("runs: %1/.local/share/accrue/runs").arg(home_.path())),
             qPrintable(paths.out));
  }

  void bad_arguments_are_refused_with_2() {
    for (const QStringList& arguments :
         {QStringList{QStringLiteral("--nonsense")}, QStringList{QStringLiteral("missing.accrue")},
          QStringList{QStringLiteral("--run")}, QStringList{QStringLiteral("--plugin"), QStringLiteral("nowhere.so")},
          QStringList{QStringLiteral("--plugin"), accrue::test::programPath("accrue")},
          QStringList{QStringLiteral("--selftest"), QStringLiteral("--demo")}}) {
      const Outcome outcome = start(arguments);
      QCOMPARE(outcome.status, 2);
      QVERIFY(outcome.err.startsWith(QStringLiteral("accrue: ")));
    }
  }

  void selftest_prints_one_line() {
    const Outcome outcome = start({QStringLiteral("--selftest")});
    QVERIFY2(outcome.out.startsWith(QStringLiteral("selftest: ok, 2 ranks, 4 updates")),
             qPrintable(outcome.out + outcome.err));
    QCOMPARE(outcome.out.count(QLatin1Char('\n')), 1);
    QCOMPARE(outcome.status, 0);
  }

  /// On standard error, so that the output remains one line; without a display there is no window to show it.
  void selftest_names_a_picture_of_what_one_should_see() {
    qputenv("ACCRUE_FAKE_RANK", "micro_ms=1");
    const QString begins = QStringLiteral("what you should see: ");
    for (const QString& platform : {QStringLiteral("xcb"), QStringLiteral("offscreen")}) {
      const Outcome outcome =
          accrue::test::Program(accrue::test::programPath("accrue"), {QStringLiteral("--selftest")},
                                {QStringLiteral("DISPLAY=:77"), QStringLiteral("QT_QPA_PLATFORM=") + platform})
              .finish(90000);
      QCOMPARE(outcome.status, 0);
      QCOMPARE(outcome.out.count(QLatin1Char('\n')), 1);
      if (platform == QLatin1String("offscreen")) {
        QVERIFY2(outcome.err.isEmpty(), qPrintable(outcome.err));
        continue;
      }
      QVERIFY2(outcome.err.startsWith(begins), qPrintable(outcome.err));
      QVERIFY(QImage(outcome.err.mid(begins.size()).trimmed()).width() > 1000);
    }
  }

  void demo_runs_photographs_and_leaves() {
    const QString picture = home_.filePath(QStringLiteral("window.png"));
    const Outcome outcome = start(
        {QStringLiteral("--demo"), QStringLiteral("--screenshot"), picture, QStringLiteral("--exit-when-finished")});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    const QImage image(picture);
    QVERIFY(image.width() >= 1000 && image.height() >= 600);
    QSet<QRgb> colors;
    for (int y = 0; y < image.height(); y += 2)
      for (int x = 0; x < image.width(); x += 2) colors.insert(image.pixel(x, y));
    QVERIFY(colors.size() > 50);
    QCOMPARE(QDir(home_.filePath(QStringLiteral(".local/share/accrue/runs")))
                 .entryList(QDir::Dirs | QDir::NoDotAndDotDot)
                 .size(),
             1);
  }

  void a_bad_spec_leaves_with_2() {
    QFile spec(home_.filePath(QStringLiteral("bad.accrue")));
    QVERIFY(spec.open(QIODevice::WriteOnly));
    spec.write("accrue = 1\n[accumulation]\nsteps = 0\n");
    spec.close();
    const Outcome outcome = start({spec.fileName(), QStringLiteral("--run"), QStringLiteral("--exit-when-finished")});
    QCOMPARE(outcome.status, 2);
    QVERIFY2(outcome.err.contains(QStringLiteral("accumulation.steps")), qPrintable(outcome.err));
  }

  void a_lost_rank_leaves_with_its_status() {
    const Outcome outcome =
        start({QStringLiteral("--demo"), QStringLiteral("--exit-when-finished")}, "micro_ms=1,die=1@9:9");
    QCOMPARE(outcome.status, 4);
  }

  void a_loss_of_nan_leaves_with_3() {
    const Outcome outcome =
        start({QStringLiteral("--demo"), QStringLiteral("--exit-when-finished")}, "micro_ms=1,nan=9");
    QCOMPARE(outcome.status, 3);  // it does not wait for an answer
  }

  void a_run_folder_is_not_trained() {
    const Outcome outcome = start({home_.path(), QStringLiteral("--run"), QStringLiteral("--exit-when-finished")});
    QCOMPARE(outcome.status, 2);
    QVERIFY2(outcome.err.contains(QStringLiteral("--run")), qPrintable(outcome.err));
  }

  void a_picture_of_a_run_folder_shows_its_history() {
    QFile spec(home_.filePath(QStringLiteral("long.accrue")));
    QVERIFY(spec.open(QIODevice::WriteOnly));
    spec.write("accrue = 1\n[run]\nupdates = 3000\n[accumulation]\nsteps = 16\n");
    spec.close();
    const QDir runs(home_.filePath(QStringLiteral(".local/share/accrue/runs")));
    const QStringList before = runs.entryList(QDir::Dirs | QDir::NoDotAndDotDot);
    QCOMPARE(
        start({spec.fileName(), QStringLiteral("--run"), QStringLiteral("--exit-when-finished")}, "rate=20000").status,
        0);
    QString run;
    for (const QString& name : runs.entryList(QDir::Dirs | QDir::NoDotAndDotDot))
      if (!before.contains(name)) run = runs.filePath(name);
    const QString picture = home_.filePath(QStringLiteral("history.png"));
    const Outcome outcome =
        start({run, QStringLiteral("--screenshot"), picture, QStringLiteral("--exit-when-finished")});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    // The curve reaches the plot's right edge: coloured points stand in each of its eight parts.
    const QImage image(picture);
    const QRect loss(440, 80, 624, 280);
    QVERIFY(image.rect().contains(loss));
    QSet<int> parts;
    for (int y = loss.top(); y <= loss.bottom(); ++y)
      for (int x = loss.left(); x <= loss.right(); ++x)
        if (image.pixelColor(x, y).hsvSaturation() > 150) parts.insert((x - loss.left()) * 8 / loss.width());
    QCOMPARE(parts.size(), 8);
    // A folder that holds no run is said, not waited for.
    const QString empty = home_.filePath(QStringLiteral("empty"));
    QVERIFY(QDir().mkpath(empty));
    QCOMPARE(start({empty, QStringLiteral("--screenshot"), picture, QStringLiteral("--exit-when-finished")}).status, 2);
  }
};

ACCRUE_TEST_MAIN(TestCliOptions)
#include "test_cli_options.moc"
