// SPDX-License-Identifier: Apache-2.0
// Curves in text tables: those of other tools, and what the studio writes.
#include <QTemporaryDir>
#include <QTest>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "accrue/run/logs/log_import.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "support/fuzz_inputs.h"
#include "support/losses_of.h"
#include "support/table.h"
#include "support/test_program.h"
#include "table_log.h"

namespace test_table_log {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

constexpr double written = 2000.0;

std::vector<RunLog> runs_of(const std::string& text) {
  auto runs = parse_table_log(text, "a.csv", written);
  if (!runs) qFatal("%s", runs.error().text().c_str());
  return std::move(*runs);
}

/// Of one run, into the folder.
Result<ImportChoice> import_one(RunLog log, const std::string& from, const fs::path& folder, const GivenTags& given) {
  std::vector<RunLog> logs;
  logs.push_back(std::move(log));
  const auto place = import_place_of(folder);
  if (!place) return tl::unexpected(place.error());
  auto imported = import_logs(std::move(logs), from, *place, given);
  if (!imported) return tl::unexpected(imported.error());
  return std::move(imported->front().choice);
}

}  // namespace

class TestTableLog : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("place" + std::to_string(++count_)); }

 private Q_SLOTS:
  void a_table_becomes_a_run() {
    const auto runs = runs_of(
        ",Step,Loss,lr,\"note, long\",samples,seconds\r\n"
        "0,1,3.5,0.1,first,8,0.5\r\n"
        "\r\n"
        "1,2,nan,0.2,,16,1.5\r\n"
        "2,3,2.5,,third,24,2.5\r\n");
    QCOMPARE(runs.size(), std::size_t{1});
    const RunLog& log = runs[0];
    QVERIFY(log.problems.empty());
    QCOMPARE(log.scalars.at("Loss").at(0), (LoggedScalar{1, written + 0.5, 3.5}));
    QVERIFY(std::isnan(log.scalars.at("Loss").at(1).value));
    QCOMPARE(log.scalars.at("lr").size(), std::size_t{2});
    const fs::path folder = fresh();
    const auto choice = import_one(runs[0], "a.csv", folder, {});
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
    QCOMPARE(course.updates.at(2).lr, std::optional(0.2));
    QVERIFY(!course.updates.at(3).lr);
  }

  /// As Lightning's CSVLogger writes it: training and validation in rows of their own.
  void rows_of_one_step_are_joined_and_the_later_value_counts() {
    const auto runs = runs_of(
        "epoch,step,train_loss,val_loss\n"
        "0,10,3,\n0,10,,2.5\n1,20,2,\n1,20,1.5,\n");
    const fs::path folder = fresh();
    const auto choice = import_one(runs[0], "metrics.csv", folder, {.batch = 4});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    QCOMPARE(choice->tags.evaluation, "val_loss");
    const RunCourse course = read_course(folder).value();
    QCOMPARE(course.updates.at(20).loss, 1.5);
    QCOMPARE(course.updates.at(20).samples, 80);
    QCOMPARE(losses_of(course), (std::map<std::int64_t, double>{{10, 2.5}}));
    QCOMPARE(runs[0].problems, (std::vector<std::string>{"a.csv: no column says the time"}));
  }

  void what_the_studio_writes_is_a_run_for_each_id() {
    const auto runs = runs_of(
        "run_id,run,metric,micro_step,update,sample,token,epoch,seconds,compute_seconds,value,smoothed,smoothing_"
        "weight,smoothing_formula\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",loss,4,1,32,0,0,1.5,1,3.25,3.25,0.9,\"s(t), finite points only\"\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",loss,8,2,64,0,0,2.5,1,3,3.1,0.9,\"s(t), finite points only\"\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",loss,12,3,96,0,0,3.5,2,,,,\r\n"  // its window had no label
        "a,\"Demo, \"\"N\"\" = 4\",learning_rate,4,1,32,0,0,1.5,1,0.1,,,\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",learning_rate,12,3,96,0,0,3.5,2,0.1,,,\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",micro_loss,1,0.25,8,0,0,1,1,4,,,\r\n"
        "a,\"Demo, \"\"N\"\" = 4\",evaluation_loss,8,2,64,0,0,2.5,1,2.75,,,\r\n"
        "b,Demo,loss,4,1,8,0,0,1,1,9,,,\r\n");
    QCOMPARE(runs.size(), std::size_t{2});
    QCOMPARE(runs[0].name, "Demo, \"N\" = 4");
    const fs::path folder = fresh();
    const auto choice = import_one(runs[0], "data.csv", folder, {});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    const RunCourse course = read_course(folder).value();
    QCOMPARE(course.updates.at(1).loss, 3.25);
    QCOMPARE(course.updates.at(1).lr, std::optional(0.1));
    QCOMPARE(course.updates.at(2).samples, 64);
    QVERIFY(!course.updates.contains(3));
    QCOMPARE(course.updates.at(2).seconds, 1.0);
    QCOMPARE(losses_of(course), (std::map<std::int64_t, double>{{2, 2.75}}));
    const fs::path other = fresh();
    QVERIFY(import_one(runs[1], "data.csv", other, {}).has_value());
    QCOMPARE(read_course(other).value().updates.at(1).loss, 9.0);
  }

  /// Two losses, 2.5 at the first step and 2.0 at the second; what is said of the table's steps and its damage.
  void a_table_is_read_whatever_its_dialect_data() {
    const Rows<QByteArray, QList<qlonglong>, QString> row;
    const QList<qlonglong> both{1, 2};
    row("comma", "step,loss,lr\n1,2.5,0.1\n2,2.0,0.1\n", both, "");
    row("semicolon", "step;loss;lr\n1;2.5;0.1\n2;2.0;0.1\n", both, "");
    row("decimal comma", "step;loss;lr\n1;2,5;0,1\n2;2,0;0,1\n", both, "");
    row("tab", "step\tloss\tlr\n1\t2.5\t0.1\n2\t2.0\t0.1\n", both, "");
    row("tab and decimal comma", "step\tloss\n1\t2,5\n2\t2,0\n", both, "");
    row("quoted decimal comma", "step,loss\n\"1\",\"2,5\"\n\"2\",\"2,0\"\n", both, "");
    row("commas in a header of semicolons", "step;loss;\"a, b, c\";d,e\n1;2.5;;\n2;2.0;;\n", both, "");
    row("spaces around quotes", "step, \"loss\"\n1, \"2.5\"\n2,2.0\n", both, "");
    row("no end of line", "step,loss\n1,2.5\n2,2.0", both, "");
    row("carriage returns and line feeds", "step,loss\r\n1,2.5\r\n2,2.0\r\n", both, "");
    row("blank lines", "\n\nstep,loss\n\n1,2.5\n2,2.0\n\n", both, "");
    row("cut in a number of a short row", "step,loss,lr\n1,2.5,0.1\n2,2.0,0.1\n3,1.", both,
        "a.csv:4: the last row is cut short");
    row("cut behind the step", "step,loss\n1,2.5\n2,2.0\n3", both, "a.csv:4: the last row is cut short");
    row("cut in the exponent", "step,loss\n1,2.5\n2,2.0\n3,1e", both, "a.csv:4: the last row is cut short");
    row("cut in a quote", "step,loss\n1,2.5\n2,2.0\n3,\"1", both, "a.csv:4: the last row is cut short");
    row("W&B", "_step,_runtime,_timestamp,train/loss\n1,5,1700000000.1,2.5\n2,6,1700000001.1,2.0\n", both, "");
    row("HF Trainer under W&B", "_step,train/global_step,train/loss\n7,1,2.5\n8,2,2.0\n", both, "");
    row("Lightning under W&B", "trainer/global_step,train_loss,epoch\n1,2.5,0\n2,2.0,0\n", both, "");
    row("Keras", "epoch,loss,val_loss\n0,2.5,1.1\n1,2.0,1.0\n", {0, 1}, "a.csv: a step is an epoch");
    row("epochs beside steps", "epoch,step,loss\n0,1,2.5\n0,2,2.0\n", both, "");
    row("a row without a step", "step,loss\n1,2.5\n,9\n2,2.0\n", both, "a.csv: 1 row without a step left out");
  }
  void a_table_is_read_whatever_its_dialect() {
    const auto [text, steps, said] = current_row<QByteArray, QList<qlonglong>, QString>();
    const auto logs = parse_table_log(text.toStdString(), "a.csv", written);
    QVERIFY2(logs, logs ? "" : logs.error().text().c_str());
    const auto choice = choose_tags(logs->front(), {});
    QVERIFY2(choice, choice ? "" : choice.error().text().c_str());
    const auto& losses = logs->front().scalars.at(choice->tags.loss);
    QCOMPARE(losses.size(), std::size_t{2});
    for (const std::size_t i : {0U, 1U}) {
      QCOMPARE(losses[i].step, steps[int(i)]);
      QCOMPARE(losses[i].value, i == 0 ? 2.5 : 2.0);
    }
    if (!choice->tags.lr.empty()) QCOMPARE(logs->front().scalars.at("lr").back().value, 0.1);
    bool is_said = said.isEmpty();
    for (const std::string& problem : logs->front().problems)
      is_said = is_said || QString::fromStdString(problem).startsWith(said);
    QVERIFY2(is_said, qPrintable(said));
  }

  /// Neither separator nor decimal comma is guessed if that would change a number.
  void a_comma_beside_points_is_no_decimal_one() {
    const auto thousands = parse_table_log("step\tloss\n1,000\t2.5\n", "a.csv", written);
    QVERIFY2(thousands.error().text().starts_with("a.csv:2: column 1: \"1,000\" is no step"),
             thousands.error().text().c_str());
    const auto dates = runs_of("step;loss;day\n1;2,5;01.02.2024\n");
    QCOMPARE(dates.front().scalars.at("loss").front().value, 2.5);
  }

  void a_column_of_steps_can_be_named() {
    const std::string text = "tick,loss,step\n1,2.5,7\n2,2.0,8\n";
    const auto named = parse_table_log(text, "a.csv", written, {.step = "tick"});
    QCOMPARE(named.value().front().scalars.at("loss").front().step, 1);
    QCOMPARE(named.value().front().scalars.at("step").front().value, 7.0);
    const auto wrong = parse_table_log(text, "a.csv", written, {.step = "ticks"});
    QCOMPARE(wrong.error().text(), "a.csv:1: there is no column \"ticks\". There are: tick, loss, step.");
  }

  /// A column for each run, with its extremes, which are not needed.
  void a_chart_of_wandb_is_a_run_for_each_column() {
    const auto runs = runs_of(
        "\"Step\",\"one - a - train/loss\",\"one - a - train/loss__MIN\",\"one - a - train/loss__MAX\",\"two - "
        "train/loss\","
        "\"two - train/loss__MIN\",\"two - train/loss__MAX\"\n"
        "\"0\",\"1.6\",\"1.6\",\"1.6\",\"\",\"\",\"\"\n\"1\",\"1.5\",\"1.4\",\"1.6\",\"1.7\",\"1.7\",\"1.7\"\n");
    QCOMPARE(runs.size(), std::size_t{2});
    QCOMPARE(runs[0].name, "one - a");
    QCOMPARE(runs[0].scalars.size(), std::size_t{1});
    QCOMPARE(runs[0].scalars.at("train/loss"), (std::vector<LoggedScalar>{{0, written, 1.6}, {1, written, 1.5}}));
    QCOMPARE(runs[1].scalars.at("train/loss"), (std::vector<LoggedScalar>{{1, written, 1.7}}));
    // A dash in a name makes no chart.
    QCOMPARE(runs_of("step,a - loss\n1,2\n").front().scalars.count("a - loss"), std::size_t{1});
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
        "a.csv:1: no column says the step. Name one of them update, step or iteration, or give accrue-run import "
        "--step; there are: a, "
        "b, "
        "c, d, e, f, g, h, i, j, k, l and 2 more.");
    row("no loss", "step,a,b\n1,2,3\n", "no column of the log has the usual name of a loss");
  }
  void errors_say_line_and_column() {
    const auto [text, words] = current_row<QByteArray, QString>();
    const auto runs = parse_table_log(text.toStdString(), "a.csv", written);
    const fs::path folder = fresh();
    const QString said = QString::fromStdString(runs ? import_one(runs->front(), "a.csv", folder, {}).error().text()
                                                     : runs.error().text());
    QVERIFY2(said.startsWith(words), qPrintable(said));
    QVERIFY(!fs::exists(folder));
  }

  void the_runs_of_a_table_come_in_together_or_not_at_all() {
    const std::string header = "run_id,run,metric,update,value\n";
    const std::string one = "a,A,loss,1,3\n", other = "b,B,loss,1,2\n";
    const fs::path folder = fresh();
    const auto import = [&](const std::string& rows, const std::function<bool()>& go_on = {}) {
      return import_logs(runs_of(header + rows), "t.csv", {.runs_dir = folder}, {}, go_on);
    };
    const auto is_bare = [&] { return !fs::exists(folder) || fs::is_empty(folder); };
    const auto refused = import(one + "b,B,speed,1,2\nb,B,heat,1,2\n");
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message.starts_with("run b: no column of the log has the usual name of a loss"),
             refused.error().text().c_str());
    QVERIFY(is_bare());
    int asked = 0;
    QCOMPARE(import(one + other, [&] { return ++asked < 2; }).error().code, ErrorCode::cancelled);
    QVERIFY(is_bare());
    // The remains of a killed import do no harm, and are removed.
    fs::create_directories(folder / ".import-killed.part" / "imported-t.csv");
    const auto imported = import(one + other);
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QCOMPARE(imported->size(), std::size_t{2});
    QCOMPARE(read_course(imported->at(1).dir).value().updates.at(1).loss, 2.0);
    QCOMPARE(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
    // One folder is not for two runs, a folder that holds something is left alone, and an empty one is taken.
    QVERIFY(!import_logs(runs_of(header + one + other), "t.csv", {folder, "both"}, {}).has_value());
    fs::create_directories(folder / "taken" / "mine");
    QVERIFY(!import_logs(runs_of(header + one), "t.csv", {folder, "taken"}, {}).has_value());
    QVERIFY(fs::exists(folder / "taken" / "mine"));
    fs::create_directories(folder / "empty");
    QVERIFY(import_logs(runs_of(header + one), "t.csv", {folder, "empty"}, {}).has_value());
    QVERIFY(read_run(folder / "empty").has_value());
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
      const auto runs = parse_table_log(text, "a.csv", written);
      if (!runs) continue;
      for (const RunLog& log : *runs)
        for (const auto& [tag, values] : log.scalars)
          for (std::size_t i = 1; i < values.size() && !tag.ends_with(" vs samples"); ++i)
            QVERIFY(values[i - 1].step < values[i].step);
    }
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestTableLog)

}  // namespace test_table_log
#include "test_table_log.moc"
