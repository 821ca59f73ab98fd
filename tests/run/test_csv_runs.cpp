// SPDX-License-Identifier: Apache-2.0
// Curves in csv files: tables of other tools, and what the studio writes.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <random>

#include "accrue/run/compare.h"
#include "accrue/run/csv_runs.h"
#include "accrue/run/run_store.h"
#include "support/fuzz_inputs.h"
#include "support/losses_of.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_csv_runs {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

constexpr double written = 2000.0;

std::vector<CsvRun> runs_of(const std::string& text) {
  auto runs = parse_csv_runs(text, "a.csv", written);
  if (!runs) qFatal("%s", runs.error().text().c_str());
  return std::move(*runs);
}

}  // namespace

class TestCsvRuns : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("place" + std::to_string(++count_)); }

 private Q_SLOTS:
  void a_table_becomes_a_run() {
    const auto runs = runs_of(
        "\xEF\xBB\xBF,Step,Loss,lr,\"note, long\",samples,seconds\r\n"
        "0,1,3.5,0.1,first,8,0.5\r\n"
        "\r\n"
        "1,2,nan,0.2,,16,1.5\r\n"
        "2,3,2.5,,third,24,2.5\r\n");
    QCOMPARE(runs.size(), std::size_t{1});
    const TensorboardLog& log = runs[0].log;
    QVERIFY(log.problems.empty());
    QCOMPARE(log.scalars.at("Loss").at(0), (LoggedScalar{1, written + 0.5, 3.5}));
    QVERIFY(std::isnan(log.scalars.at("Loss").at(1).value));
    QCOMPARE(log.scalars.at("lr").size(), std::size_t{2});
    const fs::path folder = fresh();
    const auto choice = import_csv(runs[0], "a.csv", folder, {});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    QCOMPARE(choice->tags.loss, "Loss");
    QCOMPARE(choice->tags.lr, "lr");
    QCOMPARE(choice->ignored, (std::vector<std::string>{"note, long"}));
    const auto run = read_run(folder);
    QVERIFY(run.has_value());
    QVERIFY(run->problems.empty());
    QVERIFY(is_imported(*run));
    QCOMPARE(run->name, "a.csv (imported)");
    QCOMPARE(run->updates, 3);
    QCOMPARE(run->samples, 24);
    QCOMPARE(run->seconds, 2.0);
    QCOMPARE(run->started_at, "1970-01-01T00:33:20Z");  // 2000 s
    const RunCourse course = read_course(folder).value();
    QCOMPARE(course.updates.at(3).loss, 2.5);
    QCOMPARE(course.updates.at(2).lr, 0.2);
    QVERIFY(std::isnan(course.updates.at(3).lr));
  }

  /// As Lightning's CSVLogger writes it: training and validation in rows of their own.
  void rows_of_one_step_are_joined_and_the_later_value_counts() {
    const auto runs = runs_of(
        "epoch,step,train_loss,val_loss\n"
        "0,10,3,\n0,10,,2.5\n1,20,2,\n1,20,1.5,\n");
    const fs::path folder = fresh();
    const auto choice = import_csv(runs[0], "metrics.csv", folder, {.batch = 4});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    QCOMPARE(choice->tags.evaluation, "val_loss");
    const RunCourse course = read_course(folder).value();
    QCOMPARE(course.updates.at(20).loss, 1.5);
    QCOMPARE(course.updates.at(20).samples, 80);
    QCOMPARE(losses_of(course), (std::map<std::int64_t, double>{{10, 2.5}}));
    QCOMPARE(runs[0].log.problems, (std::vector<std::string>{"a.csv: no column says the time"}));
  }

  void what_the_studio_writes_is_a_run_for_each_id() {
    const auto runs = runs_of(
        "run_id,run,metric,micro_step,update,sample,token,epoch,seconds,compute_seconds,value,smoothed,smoothing_"
        "weight,smoothing_formula\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",loss,4,1,32,0,0,1.5,1,3.25,3.25,0.9,\"s(t), finite points only\"\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",loss,8,2,64,0,0,2.5,1,3,3.1,0.9,\"s(t), finite points only\"\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",learning_rate,4,1,32,0,0,1.5,1,0.1,,,\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",micro_loss,1,0.25,8,0,0,1,1,4,,,\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",evaluation_loss,8,2,64,0,0,2.5,1,2.75,,,\r\n"
        "b,Demo,loss,4,1,8,0,0,1,1,9,,,\r\n");
    QCOMPARE(runs.size(), std::size_t{2});
    QCOMPARE(runs[0].log.name, "Demo, \"N\" = 4");
    const fs::path folder = fresh();
    const auto choice = import_csv(runs[0], "data.csv", folder, {});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    const RunCourse course = read_course(folder).value();
    QCOMPARE(course.updates.at(1).loss, 3.25);
    QCOMPARE(course.updates.at(1).lr, 0.1);
    QCOMPARE(course.updates.at(2).samples, 64);
    QCOMPARE(course.updates.at(2).seconds, 1.0);
    QCOMPARE(losses_of(course), (std::map<std::int64_t, double>{{2, 2.75}}));
    const fs::path other = fresh();
    QVERIFY(import_csv(runs[1], "data.csv", other, {}).has_value());
    QCOMPARE(read_course(other).value().updates.at(1).loss, 9.0);
  }

  void errors_say_line_and_column_data() {
    const Rows<QByteArray, QString> row;
    row("empty", "", "a.csv: is empty");
    row("no header", "1,2\n3,4\n", "a.csv:1: there is no header line");
    row("no step", "loss,lr\n1,2\n", "a.csv:1: no column says the step");
    row("column twice", "step,loss,loss\n", "a.csv:1: column 3: the column \"loss\" is there twice");
    row("no row", "step,loss\n", "a.csv: holds no row of numbers");
    row("short row", "step,loss\n1,2\n\n3\n", "a.csv:4: the row has 1 field where the header line has 2");
    row("long row", "step,loss\n1,2,3\n", "a.csv:2: the row has 3 fields where");
    row("word for a step", "loss,step\n1,one\n", "a.csv:2: column 2: \"one\" is no step");
    row("half a step", "step,loss\n1.5,2\n", "a.csv:2: column 1: \"1.5\" is no step");
    row("negative step", "step,loss\n-1,2\n", "a.csv:2: column 1: \"-1\" is no step");
    row("open quote", "step,loss\n1,2\n2,\"3\n4,5\n", "a.csv:3: column 2: a quote is opened here and never closed");
    row("text behind a quote", "step,loss\n\"1\"x,2\n",
        "a.csv:2: column 1: the field goes on behind its closing quote");
    row("lines in a quote", "step,note,loss\n1,\"a\nb\",2\nx,,\n", "a.csv:4: column 1: \"x\" is no step");
    row("word for a loss", "step,loss\n1,2\n2,two\n", "a.csv:3: column 2: \"two\" is no number");
    row("lone carriage returns", "step,loss\r1,2\r\r2,two\r", "a.csv:4: column 2: \"two\" is no number");
    row("two signs", "step,loss\n+-1,2\n", "a.csv:2: column 1: \"+-1\" is no step");
    row("out of range", "step,loss\n1,2\n2,1e999\n", "a.csv:3: column 2: \"1e999\" is out of the range of numbers");
    row("too many columns", "step" + QByteArray(10'000, ','), "a.csv:1: the row has more than 10000 columns");
    row("many columns and no step", "a,b,c,d,e,f,g,h,i,j,k,l,m,n\n",
        "a.csv:1: no column says the step. Name one of them update, step or iteration; there are: a, b, c, d, e, f, g, "
        "h, i, j, k, l and 2 more.");
    row("no loss", "step,a,b\n1,2,3\n", "no column of the log has the usual name of a loss");
  }
  void errors_say_line_and_column() {
    const auto [text, words] = current_row<QByteArray, QString>();
    const auto runs = parse_csv_runs(text.toStdString(), "a.csv", written);
    const fs::path folder = fresh();
    const QString said = QString::fromStdString(runs ? import_csv(runs->front(), "a.csv", folder, {}).error().text()
                                                     : runs.error().text());
    QVERIFY2(said.startsWith(words), qPrintable(said));
    QVERIFY(!fs::exists(folder));
  }

  void the_runs_of_a_table_come_in_together_or_not_at_all() {
    const std::string header = "run_id,run,metric,update,value\n";
    const std::string one = "a,A,loss,1,3\n", other = "b,B,loss,1,2\n";
    const fs::path folder = fresh();
    const auto place = [&] { return import_place(folder, "t.csv"); };
    const auto refused = import_csv_runs(runs_of(header + one + "b,B,speed,1,2\nb,B,heat,1,2\n"), "t.csv", place, {});
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message.starts_with("run b: no column of the log has the usual name of a loss"),
             refused.error().text().c_str());
    QVERIFY(!fs::exists(folder) || fs::is_empty(folder));
    // The second folder is taken: the first one is gone again, and what was there is not.
    const fs::path taken = folder / "taken";
    fs::create_directories(taken / "mine");
    int asked = 0;
    const auto second_is_taken = [&] { return ++asked == 2 ? taken : place(); };
    QVERIFY(!import_csv_runs(runs_of(header + one + other), "t.csv", second_is_taken, {}).has_value());
    QCOMPARE(asked, 2);
    QVERIFY(fs::exists(taken / "mine"));
    QCOMPARE(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
    const auto never = [] { return false; };
    QCOMPARE(import_csv_runs(runs_of(header + one), "t.csv", place, {}, never).error().code, ErrorCode::cancelled);
    const auto imported = import_csv_runs(runs_of(header + one + other), "t.csv", place, {});
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QCOMPARE(imported->size(), std::size_t{2});
    QCOMPARE(read_course(imported->at(1).dir).value().updates.at(1).loss, 2.0);
  }

  void random_bytes_are_survived() {
    const std::string good = "step,loss,\"l\"\"r\",seconds\n1,2,0.5,1\n2,nan,,2\n3,1e300,\"7\",3\n";
    const std::string letters = "\",\n\r0123456789.e+-nax \xff";
    std::mt19937 random(3);
    for (int trial = 0; trial < fuzz_inputs; ++trial) {
      std::string text = good;
      for (int change = 1 + int(random() % 6); change > 0; --change)
        text[random() % text.size()] = letters[random() % letters.size()];
      if (trial % 7 == 0) text.resize(random() % text.size());
      const auto runs = parse_csv_runs(text, "a.csv", written);
      if (!runs) continue;
      for (const CsvRun& run : *runs)
        for (const auto& [tag, values] : run.log.scalars)
          for (std::size_t i = 1; i < values.size() && !tag.ends_with(" vs samples"); ++i)
            QVERIFY(values[i - 1].step < values[i].step);
    }
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestCsvRuns)

}  // namespace test_csv_runs
#include "test_csv_runs.moc"
