// SPDX-License-Identifier: GPL-3.0-or-later
// The built-in demo over ranks that really train, as a program that waits for its end.
#include <QDir>
#include <QTemporaryDir>
#include <QTest>

#include "accrue/run/record/run_store.h"
#include "support/programs.h"
#include "support/test_program.h"

namespace test_demo {

class TestDemo : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_demo_trains_to_its_end() {
    for (const char* name : {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) qunsetenv(name);
    const QTemporaryDir home;
    const accrue::test::Outcome outcome =
        accrue::test::Program(accrue::test::programPath("accrue"),
                              {QStringLiteral("--demo"), QStringLiteral("--exit-when-finished")},
                              {QStringLiteral("HOME=") + home.path(), QStringLiteral("QT_QPA_PLATFORM=offscreen"),
                               QStringLiteral("ACCRUE_RANK_PROGRAM=") + accrue::test::programPath("accrue-rank")})
            .finish(400000);
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    const QDir runs(home.filePath(QStringLiteral(".local/share/accrue/runs")));
    const QStringList folders = runs.entryList(QDir::Dirs | QDir::NoDotAndDotDot);
    QCOMPARE(folders.size(), 1);
    const auto run = accrue::read_run(runs.filePath(folders.front()).toStdString());
    QVERIFY(run.has_value());
    QCOMPARE(run->state, std::string("finished"));
    QCOMPARE(run->updates, run->planned_updates);
    QVERIFY2(run->loss < 2.0, qPrintable(QString::number(run->loss)));
  }
};

ACCRUE_TEST_MAIN(TestDemo)

}  // namespace test_demo
#include "test_demo.moc"
