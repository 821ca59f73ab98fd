// SPDX-License-Identifier: Apache-2.0
// accrue-run import with the logs of other tools: what it prints where, how it exits, and how compare takes the runs.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>

#include "support/programs.h"
#include "support/test_program.h"

namespace test_import {

using namespace accrue::test;

class TestImport : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  QString fresh() { return temporary_.filePath(QStringLiteral("run%1").arg(++count_)); }
  /// A file of this text.
  QString file(const QString& name, const QByteArray& text) const {
    QFile written(temporary_.filePath(name));
    if (!written.open(QIODevice::WriteOnly)) qFatal("%s", qPrintable(written.errorString()));
    written.write(text);
    return written.fileName();
  }
  static Outcome run(const QStringList& arguments) { return Program(programPath("accrue-run"), arguments).finish(); }
  static QJsonObject object(const QString& text) { return QJsonDocument::fromJson(text.toUtf8()).object(); }
  static QJsonObject curve_of(const QString& dir) {
    return object(run({"show", dir, "--json"}).out)["curve"].toObject();
  }
  QString imported(const QString& name, const QByteArray& text) {
    const QString dir = fresh();
    const Outcome outcome = run({"import", file(name, text), "--out", dir});
    if (outcome.status != 0) qFatal("%s", qPrintable(outcome.err));
    return dir;
  }

 private Q_SLOTS:
  void a_table_of_another_tool_is_imported() {
    const QString table = file("theirs.csv", "step,train_loss,lr,gpu\n1,3.5,0.1,a\n2,2.5,0.1,b\n");
    const QString runs = fresh();
    const Outcome first = run({"import", table, "--into", runs});
    QCOMPARE(first.status, 0);
    QCOMPARE(first.out, runs + "/imported-theirs.csv\n");
    QVERIFY2(first.err.contains("columns that are not imported: gpu"), qPrintable(first.err));
    QCOMPARE(curve_of(first.out.trimmed())["loss"].toArray().size(), 2);
    QCOMPARE(run({"import", table, "--into", runs}).out, runs + "/imported-theirs.csv-2\n");
    const Outcome refused = run({"import", table, "--into", runs, "--loss", "gpu"});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("theirs.csv:2: column 4: \"a\" is no number"), qPrintable(refused.err));
  }

  void a_folder_that_is_taken_is_left_alone() {
    const QString dir = imported("a.csv", "step,loss\n1,3\n");
    const Outcome again = run({"import", temporary_.filePath("a.csv"), "--out", dir + "/"});
    QCOMPARE(again.status, 2);
    QVERIFY2(again.err.contains("is there already, and not empty"), qPrintable(again.err));
  }

  void the_step_can_be_named() {
    const QString table = file("ticks.csv", "tick,loss\n4,3\n5,2\n");
    const Outcome unknown = run({"import", table, "--out", fresh()});
    QCOMPARE(unknown.status, 2);
    QVERIFY2(unknown.err.contains("no column says the step") && unknown.err.contains("--step"),
             qPrintable(unknown.err));
    const QString dir = fresh();
    QCOMPARE(run({"import", table, "--out", dir, "--step", "tick"}).status, 0);
    QCOMPARE(curve_of(dir)["update"].toArray(), (QJsonArray{4, 5}));
  }

  void a_rate_that_is_not_logged_is_none() {
    const QString dir = imported("rates.csv", "step,loss,lr\n1,3,0.5\n2,2,\n");
    QCOMPARE(curve_of(dir)["lr"].toArray(), (QJsonArray{0.5, QJsonValue::Null}));
  }

  void several_runs_of_one_file_go_into_folders_of_their_own() {
    const QString chart = file(
        "chart.csv",
        "\"Step\",\"a - loss\",\"a - loss__MIN\",\"a - loss__MAX\",\"b - loss\",\"b - loss__MIN\",\"b - loss__MAX\"\n"
        "0,2,2,2,3,3,3\n");
    const Outcome refused = run({"import", chart, "--out", fresh()});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("several runs") && refused.err.contains("--into"), qPrintable(refused.err));
    const QString runs = fresh();
    const Outcome done = run({"import", chart, "--into", runs});
    QCOMPARE(done.out, runs + "/imported-chart.csv\n" + runs + "/imported-chart.csv-2\n");
    QVERIFY(run({"show", runs + "/imported-chart.csv-2"}).out.contains("b (imported)"));
  }

  void the_loss_can_be_named_once_for_each_name_that_runs_have() {
    const QString chart = file("names.csv",
                               "Step,a - cost,a - cost__MIN,a - cost__MAX,a - f,a - f__MIN,a - f__MAX,"
                               "b - price,b - price__MIN,b - price__MAX,b - f,b - f__MIN,b - f__MAX\n"
                               "0,2,2,2,7,7,7,3,3,3,7,7,7\n");
    const Outcome one = run({"import", chart, "--into", fresh(), "--loss", "cost"});
    QCOMPARE(one.status, 2);
    QVERIFY2(one.err.contains("run b: no column of the log has the usual name of a loss"), qPrintable(one.err));
    const QString runs = fresh();
    QCOMPARE(run({"import", chart, "--into", runs, "--loss", "cost", "--loss", "price"}).status, 0);
    QCOMPARE(curve_of(runs + "/imported-names.csv-2")["loss"].toArray(), (QJsonArray{3}));
    const Outcome none = run({"import", chart, "--into", fresh(), "--loss", "cos"});
    QVERIFY2(none.err.contains("there is no column \"cos\" in the log. It has: cost, f, price."), qPrintable(none.err));
  }

  void a_compressed_log_is_told_how_it_is_unpacked() {
    const QString packed = file("a.csv.xz", QByteArray("\xFD"
                                                       "7zXZ\0\0\4",
                                                       8));
    const Outcome outcome = run({"import", packed, "--out", fresh()});
    QCOMPARE(outcome.status, 2);
    QVERIFY2(outcome.err.contains("this is no log: it is an xz file. Unpack it: xz -dk '" + packed + "'"),
             qPrintable(outcome.err));
  }

  void a_text_that_is_no_log_is_told_what_is_read() {
    const Outcome outcome = run({"import", file("notes.txt", "A text,\nand another line\n"), "--out", fresh()});
    QCOMPARE(outcome.status, 2);
    QVERIFY2(outcome.err.contains("no log of a kind that is read") && outcome.err.contains("trainer_state.json"),
             qPrintable(outcome.err));
    QVERIFY(!outcome.err.contains("damaged"));
  }

  void logs_without_sample_counts_are_compared_by_update_and_compare_says_so() {
    const QString a = imported("a.csv", "step,loss\n1,3.0\n2,2.0\n3,1.0\n");
    const QString b = imported("b.csv", "step,loss\n1,9.0\n2,7.0\n3,1.0\n");
    const Outcome text = run({"compare", a, b});
    for (const char* part : {"Compared at equal updates: runs 1, 2 do not say how many samples they trained on.",
                             "1 and 2: first divergence at update 1, loss 3 and 9"})
      QVERIFY2(text.out.contains(QLatin1String(part)), qPrintable(text.out));
    const auto json = object(run({"compare", a, b, "--json"}).out);
    QCOMPARE(json["clock"].toString(), QStringLiteral("updates"));
    QCOMPARE(json["first_divergence"].toObject()["updates"].toInt(), 1);
    QCOMPARE(json["points"].toArray().size(), 3);
  }

  void one_line_logged_at_other_steps_is_the_same_line() {
    QByteArray often = "step,loss\n", seldom = "step,loss\n";
    for (int step = 10; step <= 400; step += 10) {
      const QByteArray row = QByteArray::number(step) + ',' + QByteArray::number(3.0 - step / 100.0, 'f', 2) + '\n';
      if (step <= 200) often += row;
      if (step % 20 == 0) seldom += row;
    }
    const Outcome text = run({"compare", imported("g10.csv", often), imported("g20.csv", seldom)});
    QVERIFY2(text.out.contains("1 and 2: the losses are equal in every bit at the updates that both reported"),
             qPrintable(text.out));
    QVERIFY2(!text.out.contains("part"), qPrintable(text.out));
  }
};

ACCRUE_TEST_MAIN(TestImport)

}  // namespace test_import
#include "test_import.moc"
