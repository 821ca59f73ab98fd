// SPDX-License-Identifier: GPL-3.0-or-later
// The studio's command line, as a user starts it, over fake ranks and without a display.
#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QImage>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>

class TestCliOptions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void version_and_paths_print_and_end();
  void bad_arguments_are_refused_with_2();
  void selftest_prints_one_line();
  void demo_runs_photographs_and_leaves();
  void a_bad_spec_leaves_with_2();
  void a_lost_rank_leaves_with_its_status();
  void a_loss_that_is_not_a_number_leaves_with_3();

 private:
  struct Outcome {
    int status = -1;
    QString out;
    QString err;
  };
  Outcome start(const QStringList& arguments, const QString& script = QStringLiteral("micro_ms=1"));
  QTemporaryDir home_;
};

TestCliOptions::Outcome TestCliOptions::start(const QStringList& arguments, const QString& script) {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
  environment.insert(QStringLiteral("ACCRUE_RANK_PROGRAM"), QStringLiteral(ACCRUE_BIN_DIR "/accrue-fake-rank"));
  environment.insert(QStringLiteral("ACCRUE_FAKE_RANK"), script);
  environment.insert(QStringLiteral("HOME"), home_.path());
  for (const char* name : {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"})
    environment.remove(QLatin1String(name));
  environment.insert(QStringLiteral("XDG_RUNTIME_DIR"), home_.path());
  QProcess process;
  process.setProcessEnvironment(environment);
  process.start(QStringLiteral(ACCRUE_BIN_DIR "/accrue"), arguments);
  if (!process.waitForFinished(90000)) {
    process.kill();
    process.waitForFinished();
    return {-1, QString::fromUtf8(process.readAllStandardOutput()), QStringLiteral("did not end")};
  }
  return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
          QString::fromUtf8(process.readAllStandardError())};
}

void TestCliOptions::version_and_paths_print_and_end() {
  const Outcome version = start({QStringLiteral("--version")});
  QCOMPARE(version.status, 0);
  QVERIFY(version.out.contains(QRegularExpression(QStringLiteral("\\d+\\.\\d+\\.\\d+"))));
  const Outcome paths = start({QStringLiteral("--paths")});
  QCOMPARE(paths.status, 0);
  QVERIFY2(paths.out.contains(QStringLiteral("runs: %1/.local/share/accrue/runs").arg(home_.path())),
           qPrintable(paths.out));
}

void TestCliOptions::bad_arguments_are_refused_with_2() {
  for (const QStringList& arguments :
       {QStringList{QStringLiteral("--nonsense")}, QStringList{QStringLiteral("missing.accrue")},
        QStringList{QStringLiteral("--run")}}) {
    const Outcome outcome = start(arguments);
    QCOMPARE(outcome.status, 2);
    QVERIFY(outcome.err.startsWith(QStringLiteral("accrue: ")));
  }
}

void TestCliOptions::selftest_prints_one_line() {
  const Outcome outcome = start({QStringLiteral("--selftest")});
  QVERIFY2(outcome.out.startsWith(QStringLiteral("selftest: ok, 2 ranks, 4 updates")),
           qPrintable(outcome.out + outcome.err));
  QCOMPARE(outcome.out.count(QLatin1Char('\n')), 1);
  QCOMPARE(outcome.status, 0);
}

void TestCliOptions::demo_runs_photographs_and_leaves() {
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

void TestCliOptions::a_bad_spec_leaves_with_2() {
  QFile spec(home_.filePath(QStringLiteral("bad.accrue")));
  QVERIFY(spec.open(QIODevice::WriteOnly));
  spec.write("accrue = 1\n[accumulation]\nsteps = 0\n");
  spec.close();
  const Outcome outcome = start({spec.fileName(), QStringLiteral("--run"), QStringLiteral("--exit-when-finished")});
  QCOMPARE(outcome.status, 2);
  QVERIFY2(outcome.err.contains(QStringLiteral("accumulation.steps")), qPrintable(outcome.err));
}

void TestCliOptions::a_lost_rank_leaves_with_its_status() {
  const Outcome outcome =
      start({QStringLiteral("--demo"), QStringLiteral("--exit-when-finished")}, QStringLiteral("micro_ms=1,die=1@9:9"));
  QCOMPARE(outcome.status, 4);
}

void TestCliOptions::a_loss_that_is_not_a_number_leaves_with_3() {
  const Outcome outcome =
      start({QStringLiteral("--demo"), QStringLiteral("--exit-when-finished")}, QStringLiteral("micro_ms=1,nan=9"));
  QCOMPARE(outcome.status, 3);
}

QTEST_GUILESS_MAIN(TestCliOptions)
#include "test_cli_options.moc"
