// SPDX-License-Identifier: Apache-2.0
// Every lesson that comes with the program, gone through by accrue-run over real ranks: each step shows the digits that
// the lesson prints.
#include <QTemporaryDir>
#include <QTest>

#include "support/places.h"
#include "support/programs.h"
#include "support/test_program.h"

using namespace accrue::test;

class TestLessons : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_step_shows_what_it_asks_for_data() {
    QTest::addColumn<QString>("file");
    const QDir folder(sourcePath("resources/lessons"));
    for (const QString& file : folder.entryList({"*.accrue-lesson"}, QDir::Files, QDir::Name))
      QTest::addRow("%s", qPrintable(file)) << folder.filePath(file);
  }
  void every_step_shows_what_it_asks_for() {
    QFETCH(QString, file);
    Program lesson(programPath("accrue-run"), {"lesson", file, "--check"});
    const Outcome& outcome = lesson.finish(120000);
    QVERIFY2(outcome.status == 0, (outcome.out + outcome.err).toUtf8());
    QVERIFY2(!outcome.out.contains("[ ]"), outcome.out.toUtf8());
  }

  void a_lesson_whose_digits_are_wrong_fails() {
    QFile file(sourcePath("resources/lessons/1-one-weight.accrue-lesson"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QByteArray text = file.readAll();
    text.replace("[\"2.04000\"]", "[\"2.05000\"]");
    QTemporaryDir folder;
    QFile wrong(folder.filePath("wrong.accrue-lesson"));
    QVERIFY(wrong.open(QIODevice::WriteOnly) && wrong.write(text) == text.size());
    wrong.close();
    Program lesson(programPath("accrue-run"), {"lesson", wrong.fileName(), "--check"});
    const Outcome& outcome = lesson.finish(120000);
    QCOMPARE(outcome.status, 3);
    QVERIFY2(outcome.out.contains("[ ] w ends where the arithmetic says.  Found 2.04000."), outcome.out.toUtf8());
  }
};

ACCRUE_TEST_MAIN(TestLessons)
#include "test_lessons.moc"
