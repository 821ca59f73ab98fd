// SPDX-License-Identifier: Apache-2.0
// Logs of other tools: what a file is, its contents say; what of it is a run.
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "accrue/run/logs/log_import.h"
#include "accrue/run/logs/log_reader.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/tensorboard_file.h"
#include "json_log.h"
#include "megatron_log.h"
#include "support/fuzz_inputs.h"
#include "support/table.h"
#include "support/test_program.h"
#include "tensorboard_log.h"

namespace test_log_reader {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

using Steps = QList<qlonglong>;

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

Steps steps_of(const RunLog& log, const std::string& tag) {
  Steps steps;
  const auto found = log.scalars.find(tag);
  if (found == log.scalars.end()) return steps;
  for (const LoggedScalar& each : found->second) steps.append(each.step);
  return steps;
}

QByteArray utf16(const QString& text, bool big_endian, bool mark) {
  QByteArray bytes = mark ? big_endian ? QByteArray("\xfe\xff") : QByteArray("\xff\xfe") : QByteArray();
  for (const QChar each : text) {
    const char high = char(each.unicode() >> 8), low = char(each.unicode());
    bytes += big_endian ? QByteArray{1, high} + QByteArray{1, low} : QByteArray{1, low} + QByteArray{1, high};
  }
  return bytes;
}

std::string scalar_record(std::int64_t step, const std::string& tag, double value) {
  return tensorboard_record(tensorboard_event(1000.0 + double(step), step, {{tag, value}}));
}
std::string version_record() {
  return tensorboard_record(tensorboard_version_event(1000.0));
}
/// An Event at a step below 128, with a SessionLog whose status is START.
std::string start_record(int step) {
  return tensorboard_record(std::string("\x10", 1) + char(step) + std::string("\x3a\x02\x08\x01", 4));
}
std::string losses_at(const Steps& steps, const std::string& tag = "loss", double value = 1.0) {
  std::string bytes;
  for (const qlonglong step : steps) bytes += scalar_record(step, tag, value);
  return bytes;
}

bool is_said(const std::vector<std::string>& problems, const std::string& part) {
  return std::ranges::any_of(problems, [&](const std::string& each) { return each.find(part) != std::string::npos; });
}

}  // namespace

class TestLogReader : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("place" + std::to_string(++count_)); }

  RunLog read_one(const fs::path& path, const std::string& step = {}) {
    auto logs = read_logs(path, {.step = step});
    if (!logs) qFatal("%s", logs.error().text().c_str());
    if (logs->size() != 1) qFatal("%zu runs", logs->size());
    return std::move(logs->front());
  }

 private Q_SLOTS:
  /// The losses 2.5 and 2.0, whatever the file is called and however its text is encoded.
  void what_a_file_is_its_contents_say_data() {
    const Rows<QString, QByteArray, Steps, QString> row;
    const QByteArray table = "step,loss\n1,2.5\n2,2.0\n";
    const QString text = QString::fromLatin1(table);
    row("capitals", "LOG.CSV", table, {1, 2}, "loss");
    row("tsv", "log.tsv", "step\tloss\n1\t2.5\n2\t2.0\n", {1, 2}, "loss");
    row("no ending", "log", table, {1, 2}, "loss");
    row("a table that is called a log of events", "events.out.tfevents.1", table, {1, 2}, "loss");
    row("UTF-8 with a mark", "a.csv", "\xEF\xBB\xBF" + table, {1, 2}, "loss");
    row("UTF-16, little end first", "a.csv", utf16(text, false, true), {1, 2}, "loss");
    row("UTF-16, big end first", "a.csv", utf16(text, true, true), {1, 2}, "loss");
    row("UTF-16 without a mark", "a.csv", utf16(text, false, false), {1, 2}, "loss");
    row("UTF-16, big end first, without a mark", "a.csv", utf16(text, true, false), {1, 2}, "loss");
    row("NUL bytes at the end", "a.csv", table + QByteArray(32, '\0'), {1, 2}, "loss");
    row("NUL bytes inside", "a.csv", table + QByteArray(32, '\0') + "3,1.0\n", {1, 2}, "loss");
    row("JSON lines", "scalars.json",
        "{\"lr\": 0.02, \"loss\": 2.5, \"iter\": 10, \"step\": 10}\n{\"lr\": 0.02, \"loss\": 2.0, \"iter\": 20, "
        "\"step\": 20}\n",
        {10, 20}, "loss");
    row("one JSON line", "x", "{\"loss\": 2.5, \"step\": 10}", {10}, "loss");
    row("JSON lines, the last one cut", "x", "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2.0}\n{\"step\":3,\"lo",
        {1, 2}, "loss");
    row("an array of objects", "x", "[{\"step\":1,\"loss\":2.5},\n{\"step\":2,\"loss\":2.0}]", {1, 2}, "loss");
    row("the HF Trainer's state", "trainer_state.json",
        "{\"global_step\": 20, \"log_history\": [{\"loss\": 2.5, \"learning_rate\": 4e-05, \"step\": 10}, {\"loss\": "
        "2.0, \"learning_rate\": 3e-05, \"step\": 20}, {\"eval_loss\": 2.1, \"step\": 20}]}",
        {10, 20}, "loss");
    row("Megatron-LM", "out.log",
        "> building train, validation, and test datasets ...\n"
        " iteration      100/  500000 | consumed samples:        25600 | learning rate: 1.000E-04 | lm loss: "
        "2.5E+00 | loss scale: 1.0 | grad norm: 1.20 |\n"
        " [2026-01-01 10:00:00] iteration      200/  500000 | consumed samples:        51200 | elapsed time per "
        "iteration (ms): 5.0 | learning rate: 2.000E-04 | lm loss: 2.0E+00 | grad norm: 1.10 |\n",
        {100, 200}, "lm loss");
    row("Megatron-LM, with the time before each line", "out.log",
        "[2026-01-01 10:00:00] iteration 1/ 5 | lm loss: 2.5E+00 |\n[2026-01-01 10:00:09] iteration 2/ 5 | lm loss: "
        "2.0E+00 |\n",
        {1, 2}, "lm loss");
    row("a metric of MLflow", "loss", "1700000000000 2.5 10\n1700000001000 2.0 20\n", {10, 20}, "loss");
  }
  void what_a_file_is_its_contents_say() {
    const auto [name, bytes, steps, loss] = current_row<QString, QByteArray, Steps, QString>();
    const fs::path file = fresh() / name.toStdString();
    write(file, bytes.toStdString());
    const RunLog log = read_one(file);
    const auto choice = choose_tags(log, {});
    QVERIFY2(choice, choice ? "" : choice.error().text().c_str());
    QCOMPARE(QString::fromStdString(choice->tags.loss), loss);
    QCOMPARE(steps_of(log, choice->tags.loss), steps);
    QCOMPARE(log.scalars.at(choice->tags.loss).front().value, 2.5);
    if (steps.size() > 1) QCOMPARE(log.scalars.at(choice->tags.loss).back().value, 2.0);
    for (const std::string& problem : log.problems)
      QVERIFY2(problem.find(": record ") == std::string::npos, problem.c_str());
    if (bytes.contains(QByteArray(32, '\0'))) QVERIFY(is_said(log.problems, "NUL bytes"));
    if (bytes.endsWith("\"lo")) QVERIFY(is_said(log.problems, "x:3: the last line is cut short"));
  }

  /// A refusal names the kind of file and the kinds that can be read. Only event files have records.
  void what_is_no_log_is_refused_by_what_it_is_data() {
    const Rows<QString, QByteArray, QString> row;
    row("prose", "README", "A text, with a comma.\nAnd a line\n",
        "is a text, but no log of a kind that is read. What is read: ");
    row("prose of events", "events.out.tfevents.1", "locked by 17\n", "is a text, but no log of a kind");
    row("gzip", "a.csv.gz", QByteArray("\x1f\x8b\x08\x00\x00", 5),
        "is no log: it is a gzip file. Unpack it: gzip -dk '");
    row("xz", "a.jsonl.xz",
        QByteArray("\xFD"
                   "7zXZ\0\0\4",
                   8),
        "it is an xz file. Unpack it: xz -dk '");
    row("bzip2", "a.log.bz2", "BZh91AY&SY\x12", "it is a bzip2 file. Unpack it: bzip2 -dk '");
    row("bzip2 -1", "a.log", "BZh11AY&SY\x12", "it is a bzip2 file. Unpack it: bzip2 -dk '");
    row("Zstandard", "a.csv.zst", "\x28\xb5\x2f\xfd....", "it is a Zstandard file. Unpack it: zstd -d '");
    row("Parquet", "a.parquet", "PAR1....", "it is a Parquet file. Write ");
    row("workbook", "a.xlsx", QByteArray("PK\x03\x04....", 8), "save the sheet of a workbook as CSV");
    row("bytes", "a.bin", "\x01\x02\x03\x04\x05\x06\x07", "is no log of a kind that is read. What is read: ");
    row("damaged events", "events.out.tfevents.1", "\x01\x02\x03\x04\x05\x06\x07",
        "holds no scalar: events.out.tfevents.1: record 1");
    row("empty", "a.csv", "", "is empty");
    row("UTF-32", "a.csv", QByteArray("\xff\xfe\x00\x00s\x00\x00\x00", 8), "is in UTF-32, which is not read");
    row("JSON that is cut", "trainer_state.json", "{\n \"log_history\": [\n  {\"loss\": 2.5,",
        "is neither a whole JSON value nor an object a line");
    row("JSON without steps", "a.json", "{\"loss\": 2.5}\n{\"loss\": 2.0}\n", "no key says the step");
  }
  void what_is_no_log_is_refused_by_what_it_is() {
    const auto [name, bytes, words] = current_row<QString, QByteArray, QString>();
    const fs::path file = fresh() / name.toStdString();
    write(file, bytes.toStdString());
    const auto logs = read_logs(file);
    QVERIFY(!logs.has_value());
    const QString said = QString::fromStdString(logs.error().text());
    QVERIFY2(said.contains(words), qPrintable(said));
    if (!words.contains(QStringLiteral("record")))
      QVERIFY2(!said.contains(QStringLiteral("damaged")), qPrintable(said));
  }

  void a_text_that_is_too_large_is_refused_before_it_is_read() {
    const fs::path file = fresh() / "a.csv";
    write(file, "step,loss\n1,2.5\n");
    fs::resize_file(file, std::uintmax_t{1} << 30);  // of holes
    QVERIFY(is_said({read_logs(file).error().text()}, "is larger than 256 MiB, and a text is read as a whole"));
  }

  /// At each question but the first one: what follows the reading of the lines is given up as well.
  void a_reader_ends_where_it_is_told_to_data() {
    const Rows<QByteArray, QByteArray, QByteArray> row;  // the head of a file, each of its 3000 rows, the end
    row("table", "step;loss\n", "%1;2,5\n", "");
    row("JSON lines", "", "{\"step\":%1,\"loss\":2.5}\n", "");
    row("JSON of one value", "[", "{\"step\":%1,\"loss\":2.5},", "{\"step\":9999,\"loss\":2.5}]");
    row("Megatron-LM", "", "iteration %1/ 9000 | lm loss: 2.5 |\n", "");
  }
  void a_reader_ends_where_it_is_told_to() {
    const auto [head, each, end] = current_row<QByteArray, QByteArray, QByteArray>();
    QByteArray text = head;
    for (int step = 1; step <= 3000; ++step) text += QByteArray(each).replace("%1", QByteArray::number(step));
    const fs::path file = fresh() / "a.log";
    write(file, (text + end).toStdString());
    int asked = 0;
    QVERIFY(read_logs(file, {.go_on = [&] { return ++asked > 0; }}).has_value());
    const int questions = asked;
    QVERIFY(questions >= 2);
    for (int last = 1; last <= questions; ++last) {
      asked = 0;
      const auto logs = read_logs(file, {.go_on = [&] { return ++asked < last; }});
      QVERIFY(!logs.has_value());
      QCOMPARE(logs.error().code, ErrorCode::cancelled);
      QVERIFY(asked <= last + 1);
    }
    auto logs = read_logs(file);
    const fs::path run = fresh();
    asked = 0;
    const auto imported =
        import_logs(std::move(*logs), file, import_place_of(run).value(), {}, [&] { return ++asked < 3; });
    QVERIFY(!imported.has_value() && imported.error().code == ErrorCode::cancelled);
    QVERIFY(!fs::exists(run));
  }

  void pythons_numbers_are_numbers_in_json() {
    const auto log = parse_json_log(
        "{\"step\": 1, \"loss\": NaN, \"note\": \"NaN, \\\" Infinity\"}\n{\"step\": 2, \"loss\": -Infinity}\n",
        "a.json", 0.0);
    QVERIFY2(log.has_value(), log ? "" : log.error().text().c_str());
    const auto& losses = log->scalars.at("loss");
    QVERIFY(std::isnan(losses[0].value) && std::isinf(losses[1].value) && losses[1].value < 0.0);
  }

  /// MMEngine's time is that of one iteration, and its evaluations count steps of their own name.
  void rows_of_json_may_hold_different_keys() {
    const auto log = parse_json_log(
        "{\"loss\": 2.5, \"time\": 0.3, \"data_time\": 0.1, \"step\": 10}\n{\"coco/bbox_mAP\": 0.4, \"step\": 10}\n"
        "{\"epoch\": 1}\n",
        "a.json", 50.0);
    QVERIFY2(log.has_value(), log ? "" : log.error().text().c_str());
    QCOMPARE(log->scalars.at("loss"), (std::vector<LoggedScalar>{{10, 50.0, 2.5}}));
    QCOMPARE(log->scalars.at("time").front().value, 0.3);
    QVERIFY(is_said(log->problems, "1 entry without a step left out"));
  }

  /// It went to 300, was killed and went on at 200: what it had printed from there on is gone.
  void megatrons_lines_say_samples_times_evaluations_and_restarts() {
    std::string text;
    for (const int iteration : {100, 200, 300, 200})
      text += "iteration " + std::to_string(iteration) + "/ 1000 | consumed samples: " + std::to_string(8 * iteration) +
              " | elapsed time per iteration (ms): 10.0 | lm loss: " + std::to_string(iteration) + " |\n" +
              "----\n validation loss at iteration " + std::to_string(iteration) +
              " on validation set | lm loss value: 7.5E+00 | lm loss PPL: 1.8E+03 |\n";
    text += " validation loss at iteration 200 on test set | lm loss value: 9.5E+00 | lm loss PPL: 1.3E+04 |\n";
    text += "iteration 300/ 1000 | consumed samples: 2400 | lm lo";
    const auto log = parse_megatron_log(text, "a.log", 0.0);
    QVERIFY2(log.has_value(), log ? "" : log.error().text().c_str());
    QCOMPARE(steps_of(*log, "lm loss"), (Steps{100, 200}));
    QCOMPARE(steps_of(*log, "lm loss vs samples"), (Steps{800, 1600}));
    for (const LoggedScalar& each : log->scalars.at("lm loss validation")) QCOMPARE(each.value, 7.5);
    QCOMPARE(log->scalars.at("lm loss").front().wall_time, 1.0);  // 100 iterations of 10 ms
    QCOMPARE(log->scalars.at("lm loss").back().wall_time, 4.0);   // the fourth hundred, after the restart
    QCOMPARE(choose_tags(*log, {}).value().tags.evaluation, std::string("lm loss validation"));
  }

  void bytes_that_are_no_utf8_are_replaced_and_told() {
    const fs::path file = fresh() / "a.csv";
    write(file, "step,loss,L\xE4nge\n1,2.5,3\n");
    const RunLog log = read_one(file);
    QVERIFY(is_said(log.problems, "is not UTF-8 from byte 11 on"));
    QCOMPARE(steps_of(log, "L\xEF\xBF\xBDnge"), (Steps{1}));
    // So that it can be named in the studio.
    const fs::path events = fresh() / "events.out.tfevents.1";
    write(events, version_record() + losses_at({1}, "L\xE4nge"));
    QCOMPARE(steps_of(read_one(events), "L\xEF\xBF\xBDnge"), (Steps{1}));
  }

  void a_runs_metrics_of_mlflow_are_one_log() {
    const fs::path run = fresh();
    write(run / "meta.yaml", "run_name: a\n");
    write(run / "metrics" / "train" / "loss", "1700000000000 2.5 1\n1700000001000 2.0 2\n17000");
    write(run / "metrics" / "lr", "1700000000000 0.1 1\n");
    const RunLog log = read_one(run);
    QCOMPARE(steps_of(log, "train/loss"), (Steps{1, 2}));
    QCOMPARE(log.scalars.at("train/loss").back().wall_time, 1700000001.0);
    QCOMPARE(log.scalars.at("lr").front().value, 0.1);
    QVERIFY(is_said(log.problems, "loss:3: the last line is cut short"));
    QCOMPARE(steps_of(read_one(run / "metrics"), "lr"), (Steps{1}));
    write(run / "metrics" / "broken", "nothing\n1 2 3\n");
    QVERIFY(read_logs(run).error().text().find("broken:1: is no line of a metric of MLflow") != std::string::npos);
  }

  void a_step_is_named_where_a_log_has_none_of_a_usual_name() {
    const fs::path file = fresh() / "a.json";
    write(file, "{\"tick\": 4, \"loss\": 2.5}\n");
    std::vector<std::string> names;
    QVERIFY(!read_logs(file, {.step_names = &names}).has_value());
    QCOMPARE(names, (std::vector<std::string>{"tick", "loss"}));
    QCOMPARE(steps_of(read_one(file, "tick"), "loss"), (Steps{4}));
    const fs::path events = fresh() / "events.out.tfevents.1";
    write(events, version_record() + losses_at({1}));
    QVERIFY(read_logs(events, {.step = "tick"}).error().text().find("says its steps itself") != std::string::npos);
  }

  /// Right are the steps that TensorBoard's own reader shows: check_tensorboard.sh compares with it.
  void what_an_attempt_said_that_was_given_up_is_dropped_data() {
    const Rows<QByteArray, Steps, QString> row;
    const auto bytes = [](const std::string& text) { return QByteArray::fromStdString(text); };
    const std::string first = losses_at({0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20});
    const std::string second = losses_at({10, 11, 12, 13}, "loss", 2.0);
    row("a session that starts at 10", bytes(version_record() + first + version_record() + start_record(10) + second),
        {0, 2, 4, 6, 8, 10, 11, 12, 13}, "");
    row("without a start", bytes(version_record() + first + second), {0, 2, 4, 6, 8, 10, 11, 12, 13, 14, 16, 18, 20},
        "2 values left out: a later one has the same tag and step");
    row("no version, steps that go back", bytes(first + second), {0, 2, 4, 6, 8, 10, 11, 12, 13}, "");
    row("no version, another tag goes back", bytes(first + losses_at({3}, "lr")),
        {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20}, "");
    row("a session that starts at 0", bytes(version_record() + first + start_record(0) + second), {10, 11, 12, 13}, "");
    row("steps below 0", bytes(version_record() + losses_at({-3, -1, 0, 1})), {0, 1},
        "2 values at a step below 0 left out");
    row("steps that repeat", bytes(version_record() + losses_at({1, 1, 1, 2})), {1, 2},
        "2 values left out: a later one has the same tag and step");
  }
  void what_an_attempt_said_that_was_given_up_is_dropped() {
    const auto [bytes, steps, said] = current_row<QByteArray, Steps, QString>();
    const fs::path folder = fresh();
    write(folder / "events.out.tfevents.1", bytes.toStdString());
    const RunLog log = read_one(folder);
    QCOMPARE(steps_of(log, "loss"), steps);
    if (said.isEmpty()) QCOMPARE(log.problems, std::vector<std::string>());
    QVERIFY2(said.isEmpty() || is_said(log.problems, said.toStdString()), qPrintable(said));
  }

  void a_start_in_a_later_file_drops_what_earlier_files_said() {
    const fs::path folder = fresh();
    write(folder / "events.out.tfevents.1", version_record() + losses_at({0, 5, 10, 15}));
    write(folder / "events.out.tfevents.2", version_record() + start_record(10) + losses_at({10, 11}));
    QCOMPARE(steps_of(read_one(folder), "loss"), (Steps{0, 5, 10, 11}));
  }

  void files_that_hold_no_events_do_not_stand_in_the_way() {
    const fs::path folder = fresh();
    write(folder / "events.out.tfevents.1", "");
    write(folder / "events.out.tfevents.2", version_record() + losses_at({1, 2}));
    write(folder / "events.out.tfevents.2.lock", "");
    write(folder / "events.out.tfevents.3.profile-empty", version_record());
    write(folder / "events.out.tfevents.4", "locked by 17\n");
    write(folder / "events.out.tfevents.5.gz", std::string("\x1f\x8b\x08\x00", 4));
    const RunLog log = read_one(folder);
    QCOMPARE(steps_of(log, "loss"), (Steps{1, 2}));
    QCOMPARE(log.problems,
             (std::vector<std::string>{"events.out.tfevents.4 is a text, not an event file, and is not read",
                                       "events.out.tfevents.5.gz is a gzip file, not an event file, and is not read"}));
  }

  /// Keras: train and validation of one run, each with the same tags.
  void folders_of_training_and_validation_are_one_run() {
    const fs::path folder = fresh();
    for (const double scale : {1.0, 1.2})
      for (int step = 0; step < 4; ++step) {
        const fs::path file = folder / (scale == 1.0 ? "train" : "validation") / "events.out.tfevents.1.v2";
        std::ofstream(fs::create_directories(file.parent_path()) ? file : file, std::ios::app)
            << scalar_record(step, "epoch_loss", scale / (step + 1));
      }
    auto logs = read_logs(folder).value();
    const fs::path run = fresh();
    const auto imported = import_logs(std::move(logs), folder, import_place_of(run).value(), {});
    QVERIFY2(imported.has_value(), imported ? "" : imported.error().text().c_str());
    QCOMPARE(imported->front().choice.tags.loss, std::string("epoch_loss"));
    const RunCourse course = read_course(run).value();
    QCOMPARE(course.updates.at(3).loss, 0.25);
    QCOMPARE(course.evaluations.at(3).loss, double(float(0.3)));
  }

  /// As torch's add_hparams writes them: the results of a run in a folder of their own in that of the run.
  void results_beside_a_curve_are_no_run_and_are_named() {
    const fs::path folder = fresh();
    for (const char* run : {"one", "two"}) {
      write(folder / run / "events.out.tfevents.1", version_record() + losses_at({1, 2, 3}));
      write(folder / run / "1700000000.5" / "events.out.tfevents.1",
            version_record() + losses_at({0}, "hparam/accuracy") + losses_at({0}, "hparam/loss"));
    }
    auto logs = read_logs(folder).value();
    QCOMPARE(logs.size(), std::size_t{2});
    QCOMPARE(logs[0].problems,
             std::vector<std::string>{"left out, for they hold single values and lie in the folder of a "
                                      "run: one/1700000000.5, two/1700000000.5"});
    QVERIFY(import_logs(std::move(logs), folder, {.runs_dir = fresh()}, {}).has_value());
    QCOMPARE(steps_of(read_one(folder / "one"), "loss"), (Steps{1, 2, 3}));
    // Alone it is what there is.
    QCOMPARE(steps_of(read_one(folder / "one" / "1700000000.5"), "hparam/loss"), (Steps{0}));
    // A single value that lies in no run is one, and so is a curve in a run.
    write(folder / "three" / "events.out.tfevents.1", version_record() + losses_at({7}));
    write(folder / "one" / "again" / "events.out.tfevents.1", version_record() + losses_at({1, 2}));
    const auto runs = read_logs(folder).value();
    QStringList ids;
    for (const RunLog& log : runs) ids << QString::fromStdString(log.id);
    QCOMPARE(ids, (QStringList{"one", "one/again", "three", "two"}));
  }

  /// Each run takes the first of the given names that it has, and a usual one otherwise.
  void runs_may_call_the_loss_by_different_names() {
    const fs::path folder = fresh();
    for (const auto& [run, tag] : {std::pair{"one", "cost"}, {"two", "objective"}, {"three", "loss"}})
      write(folder / run / "events.out.tfevents.1",
            version_record() + losses_at({1, 2}, tag, 2.0) + losses_at({1, 2}, "speed", 9.0));
    const auto imported = [&](const GivenTags& given) {
      return import_logs(read_logs(folder).value(), folder, {.runs_dir = fresh()}, given);
    };
    QVERIFY(is_said({imported({.loss = {"cost"}}).error().text()}, "run two: no tag of the log has the usual name"));
    QVERIFY(is_said({imported({.loss = {"cost", "price"}}).error().text()},
                    "there is no tag \"price\" in the log. It has: cost, loss, objective, speed."));
    const auto runs = imported({.loss = {"objective", "cost"}});
    QVERIFY2(runs.has_value(), runs ? "" : runs.error().text().c_str());
    QStringList losses;
    for (const ImportedRun& run : *runs) losses << QString::fromStdString(run.choice.tags.loss);
    QCOMPARE(losses, (QStringList{"cost", "loss", "objective"}));
  }

  void folders_are_runs_or_parts_of_one_data() {
    const Rows<QStringList, QStringList> row;  // FOLDER:TAG of each file; RUN:TAG,TAG of what is read
    row("Keras", {"train:epoch_loss", "validation:epoch_loss"}, {":epoch_loss,validation/epoch_loss"});
    row("add_scalars", {":lr", "loss_train:loss", "loss_val:loss"}, {":loss,lr,validation/loss"});
    row("add_scalars of a tag with a slash", {"a_loss_train:a/loss", "a_loss_test:a/loss"},
        {":a/loss,validation/a/loss"});
    row("runs", {"one:loss", "two:loss"}, {"one:loss", "two:loss"});
    row("runs of two parts", {"one_train:loss", "one_eval:loss", "two_train:loss"},
        {"one:loss,validation/loss", "two:loss"});
    row("runs in runs", {"net/version_0:loss", "net/version_1:loss"}, {"net/version_0:loss", "net/version_1:loss"});
    row("a run in a folder", {"version_0:loss"}, {":loss"});
    row("validation alone", {"validation:loss"}, {":loss"});
  }
  void folders_are_runs_or_parts_of_one() {
    const auto [files, expected] = current_row<QStringList, QStringList>();
    const fs::path folder = fresh();
    for (const QString& file : files)
      write(folder / file.section(':', 0, 0).toStdString() / "events.out.tfevents.1",
            version_record() + losses_at({1, 2}, file.section(':', 1).toStdString()));
    const auto logs = read_logs(folder);
    QVERIFY2(logs.has_value(), logs ? "" : logs.error().text().c_str());
    QStringList found;
    for (const RunLog& log : *logs) {
      QStringList tags;
      for (const auto& [tag, values] : log.scalars) tags << QString::fromStdString(tag);
      found << QString::fromStdString(log.id) + ":" + tags.join(',');
    }
    QCOMPARE(found, expected);
  }

  void random_bytes_are_survived() {
    const std::vector<std::string> good = {"{\"step\":1,\"loss\":NaN,\"b\":[{}]}\n{\"step\":2,\"loss\":2.0}\n",
                                           " iteration 100/ 5 | consumed samples: 25 | lm loss: 7.105E+00 |\n "
                                           "validation loss at iteration 1 | lm loss value: 7 |\n",
                                           "step;loss\n1;2,5\n2;\"2,0\"\n"};
    std::mt19937 random(11);
    const fs::path file = fresh() / "log";
    for (int trial = 0; trial < fuzz_inputs / 10; ++trial) {
      std::string text = good[std::size_t(trial) % good.size()];
      for (int change = 1 + int(random() % 4); change > 0; --change) text[random() % text.size()] = char(random());
      write(file, text);
      if (const auto logs = read_logs(file))
        for (const RunLog& log : *logs) QVERIFY(!log.scalars.empty());
    }
  }
};

ACCRUE_FUZZ_TEST_MAIN(TestLogReader)

}  // namespace test_log_reader
#include "test_log_reader.moc"
