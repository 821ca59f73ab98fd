// SPDX-License-Identifier: Apache-2.0
// Records of other tools in, records of ours out: TensorBoard's event files and the trace-event format. The files are
// made by hand, and damaged by hand and at random.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>

#include "accrue/run/base/sha256.h"
#include "accrue/run/export/chrome_trace.h"
#include "accrue/run/export/tensorboard_export.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/logs/log_import.h"
#include "accrue/run/logs/log_reader.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/record/tensorboard_file.h"
#include "support/losses_of.h"
#include "support/test_program.h"
#include "tensorboard_log.h"

namespace test_record_exchange {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Ten losses 3.0, 2.9, ... a second apart, with rates and samples of an update.
std::string ten_losses() {
  std::string bytes = tensorboard_record(tensorboard_version_event(1000.0));
  for (int step = 1; step <= 10; ++step)
    bytes += tensorboard_record(tensorboard_event(
        1000.0 + step, step, {{"train/loss", 3.1 - 0.1 * step}, {"lr", 0.5}, {"batch-size", 32.0}, {"speed", 7.0}}));
  return bytes;
}

RunLog log_of(const std::string& bytes) {
  TensorboardReader reader;
  reader.read(bytes, "file");
  return std::move(reader).log();
}

Result<ImportChoice> import_one(const RunLog& log, const fs::path& from, const fs::path& folder,
                                const GivenTags& given) {
  const auto place = import_place_of(folder);
  if (!place) return tl::unexpected(place.error());
  auto imported = import_logs({log}, from, *place, given);
  if (!imported) return tl::unexpected(imported.error());
  return std::move(imported->front().choice);
}

/// The record of a run of two ranks: a forward and a backward each, and one all_reduce that rank 1 enters later.
fs::path two_ranks(const fs::path& dir, bool resumed = false) {
  RunSpec spec;
  spec.parallel.data = 2;
  spec.run.name = "Two \"ranks\"";
  auto writer = RunWriter::create(dir, write_spec(spec)).value();
  std::map<std::int64_t, std::int64_t> seq;
  const auto add = [&](std::int64_t rank, EventBody body) {
    writer.append({.rank = rank, .seq = seq[rank]++, .time_ns = 0, .body = std::move(body)}).value();
  };
  const auto started = [&](bool again) {
    add(supervisor_rank, RunStarted{.run = "r",
                                    .plan_json = "{}",
                                    .versions_json = "{}",
                                    .host_json = "{}",
                                    .started_at = "2026-11-23T06:00:00Z",
                                    .resumed = again,
                                    .resumed_update = 1});
  };
  const auto micro_step = [&](std::int64_t number, std::int64_t base) {
    for (const std::int64_t rank : {0, 1}) {
      add(rank, Operations{{ComputeKind::forward, ComputeKind::backward},
                           {number, number},
                           {0, 0},
                           {base + 1000, base + 3000},
                           {base + 3000, base + 6000}});
      add(rank, Sync{{number},
                     {number},
                     {"data"},
                     {"all_reduce"},
                     {CollectivePurpose::gradients},
                     {4096},
                     {base + 6000 + 500 * rank},
                     {base + 7000}});
    }
    add(0, Update{.update = number,
                  .micro_step = number,
                  .samples = 8 * number,
                  .loss = 2.0 / double(number),
                  .lr = 0.1,
                  .grad_norm = 1.0,
                  .seconds = double(number)});
  };
  started(false);
  micro_step(1, 0);
  micro_step(2, 10'000);
  if (resumed) {
    started(true);
    micro_step(2, 20'000);
  }
  return dir;
}

}  // namespace

class TestRecordExchange : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("place" + std::to_string(++count_)); }

  QJsonArray trace_of(const fs::path& run) {
    const fs::path file = fresh();
    const auto counts = write_chrome_trace(run, file);
    if (!counts) qFatal("%s", counts.error().text().c_str());
    const QJsonDocument json = QJsonDocument::fromJson(QByteArray::fromStdString(read(file)));
    if (!json.isObject()) qFatal("the trace is no JSON object");
    return json["traceEvents"].toArray();
  }

 private Q_SLOTS:
  void scalars_are_read_as_they_were_written() {
    const RunLog log = log_of(ten_losses());
    QVERIFY(log.problems.empty());
    QCOMPARE(log.scalars.size(), std::size_t{4});
    const auto& losses = log.scalars.at("train/loss");
    QCOMPARE(losses.size(), std::size_t{10});
    QCOMPARE(losses[1], (LoggedScalar{2, 1002.0, double(float(2.9))}));
  }

  /// As TensorFlow 2 writes a scalar: tag "a", and a tensor of type float (08 01) whose contents are the float 0.5.
  void a_tensor_of_one_number_is_a_scalar() {
    const std::string tensor("\x08\x01\x22\x04\x00\x00\x00\x3f", 8);
    const std::string value = std::string(
                                  "\x0a\x01"
                                  "a"
                                  "\x42\x08",
                                  5) +
                              tensor;
    const std::string summary = std::string("\x0a", 1) + char(value.size()) + value;
    const std::string event = std::string("\x10\x07\x2a", 3) + char(summary.size()) + summary;
    const RunLog log = log_of(tensorboard_record(event));
    QVERIFY(log.problems.empty());
    QCOMPARE(log.scalars.at("a"), (std::vector<LoggedScalar>{{7, 0.0, 0.5}}));
  }

  void damage_ends_a_file_with_a_sentence_and_keeps_what_came_before() {
    const std::string whole = ten_losses();
    const std::string cut = whole.substr(0, whole.size() - 1);
    QCOMPARE(log_of(cut).scalars.at("lr").size(), std::size_t{9});
    QVERIFY(log_of(cut).problems.at(0).find("record 11") != std::string::npos);
    QVERIFY(log_of(cut).problems.at(0).find("cut short") != std::string::npos);
    std::string changed = whole;
    changed[whole.size() - 10] ^= 1;
    QVERIFY(log_of(changed).problems.at(0).find("damaged (its contents)") != std::string::npos);
    std::string longer = whole;
    longer[0] = '\x7f';
    QVERIFY(log_of(longer).problems.at(0).find("damaged (its length)") != std::string::npos);
    // A length of 2^63 with its right checksum.
    const std::string huge = std::string(7, '\0') + '\x80';
    std::string sum(4, '\0');
    for (int i = 0; i < 4; ++i) sum[std::size_t(i)] = char(masked_crc32c(huge) >> (8 * i) & 0xff);
    QVERIFY(log_of(huge + sum + "xxxx").problems.at(0).find("cut short") != std::string::npos);
  }

  /// Anything may lie in an event, with checksums that are right.
  void random_bytes_are_survived() {
    std::mt19937 random(5);
    const std::string good = tensorboard_event(1.0, 3, {{"loss", 1.0}, {"lr", 2.0}});
    for (int round = 0; round < 20'000; ++round) {
      std::string event = good;
      for (int change = 0; change < 3; ++change) event[random() % event.size()] = char(random());
      if (round % 3 == 0) event.resize(random() % event.size());
      const RunLog log = log_of(tensorboard_record(event));
      QVERIFY(log.scalars.size() <= 2);
    }
    for (int round = 0; round < 2'000; ++round) {
      std::string bytes = ten_losses();
      bytes[random() % bytes.size()] ^= char(1 + random() % 255);
      QCOMPARE(log_of(bytes).problems.size(), std::size_t{1});
    }
  }

  void a_log_becomes_a_run_that_is_shown_and_compared() {
    const fs::path logs = fresh();
    fs::create_directories(logs);
    write(logs / "events.out.tfevents.1000.host", ten_losses());
    write(logs / "notes.txt", "nothing");
    const auto log = read_tensorboard(logs);
    QVERIFY2(log.has_value(), log ? "" : log.error().text().c_str());
    const fs::path folder = fresh();
    const auto choice = import_one(log->front(), logs, folder, {});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    QCOMPARE(choice->tags.loss, "train/loss");
    QCOMPARE(choice->tags.lr, "lr");
    QCOMPARE(choice->ignored, (std::vector<std::string>{"batch-size", "speed"}));
    const auto run = read_run(folder);
    QVERIFY(run.has_value());
    QCOMPARE(run->state, "finished");
    QCOMPARE(run->updates, 10);
    QCOMPARE(run->samples, 320);
    QCOMPARE(run->seconds, 9.0);
    QVERIFY(run->problems.empty());
    QVERIFY(run->message.starts_with("imported from "));
    QVERIFY(run->name.ends_with(" (imported)"));
    const auto course = read_course(folder);
    QVERIFY(course.has_value());
    QCOMPARE(to_text(course->problems), "");
    QCOMPARE(course->updates.at(2).loss, double(float(2.9)));
    QCOMPARE(course->updates.at(2).lr, std::optional(0.5));
    QVERIFY(!course->updates.at(2).grad_norm);
    const auto compared = compare_runs({two_ranks(fresh()), folder});
    QVERIFY(compared.has_value());
    // Its spec holds its name; everything else would be an unintended difference.
    QCOMPARE(compared->differences.at(1).size(), std::size_t{1});
    QCOMPARE(compared->differences.at(1).at(0).key, "run.name");
  }

  void evaluations_between_losses_come_along() {
    RunLog log;
    log.scalars = {{"loss", {{10, 1.0, 3.0}, {20, 2.0, 2.0}}},
                   {"lr", {{10, 1.0, 0.1}, {15, 1.5, 0.2}}},
                   {"eval_loss", {{0, 0.5, 4.0}, {10, 1.0, 3.5}, {15, 1.5, 3.2}, {25, 2.5, 2.5}}}};
    const fs::path folder = fresh();
    const auto choice = import_one(log, "log", folder, {.batch = 4});
    QVERIFY2(choice.has_value(), choice ? "" : choice.error().text().c_str());
    QCOMPARE(choice->notes,
             std::vector<std::string>{"1 of 2 learning rates are left out: no loss was logged at their step"});
    const auto course = read_course(folder);
    QVERIFY(course.has_value());
    QCOMPARE(to_text(course->problems), "");
    QCOMPARE(losses_of(*course), (std::map<std::int64_t, double>{{0, 4.0}, {10, 3.5}, {15, 3.2}, {25, 2.5}}));
  }

  /// Neither their product with the batch nor their sum is a number of ours.
  void steps_and_times_beyond_all_measure_are_survived() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    RunLog log;
    log.scalars = {{"loss", {{-most, nan, 3.0}, {most, nan, 2.0}}},
                   {"batch-size", {{-most, 1.0, 9e11}, {most, 1.0, 9e11}}}};
    for (const std::int64_t batch : {0, 1'000'000}) {
      const fs::path folder = fresh();
      QVERIFY(import_one(log, "log", folder, {.batch = batch}).has_value());
    }
  }

  void the_loss_is_found_or_asked_for() {
    RunLog log;
    log.scalars = {{"acc", {{1, 0, 1}}}, {"objective", {{1, 0, 1}}}};
    const auto unknown = choose_tags(log, {});
    QVERIFY(!unknown.has_value());
    QVERIFY(unknown.error().hint.find("acc, objective") != std::string::npos);
    QCOMPARE(choose_tags(log, {.loss = {"objective"}}).value().tags.loss, "objective");
    QVERIFY(!import_one(log, "log", fresh(), {.loss = {"objectiv"}}).has_value());
    log.scalars.erase("acc");
    const auto only = choose_tags(log, {});
    QCOMPARE(only.value().tags.loss, "objective");
    QCOMPARE(only.value().notes.size(), std::size_t{2});  // neither a rate nor samples
    log.scalars["Loss/Train"] = {{1, 0, 1}};
    QCOMPARE(choose_tags(log, {.batch = 8}).value().tags.loss, "Loss/Train");
  }

  void what_holds_no_scalars_is_refused_by_name() {
    const fs::path folder = fresh();
    QVERIFY(read_logs(folder).error().message.find("does not exist") != std::string::npos);
    fs::create_directories(folder);
    QVERIFY(read_tensorboard(folder).error().message.find("no event file") != std::string::npos);
    write(folder / "events.out.tfevents.1", tensorboard_record(tensorboard_version_event(1.0)));
    QVERIFY(read_tensorboard(folder).error().message.find("no scalar") != std::string::npos);
  }

  /// Out, and in again.
  void a_runs_scalars_come_back_as_they_went() {
    const fs::path run = two_ranks(fresh());
    const fs::path board = fresh();
    const auto written = export_tensorboard(run, board);
    QVERIFY2(written.has_value(), written ? "" : written.error().text().c_str());
    QCOMPARE(written->updates, 2);
    QVERIFY(!export_tensorboard(run, board).has_value());  // TensorBoard would mix the two
    const auto never = [] { return false; };
    const fs::path given_up = fresh();
    QCOMPARE(export_tensorboard(run, given_up, never).error().code, ErrorCode::cancelled);
    QVERIFY(!fs::exists(given_up) || fs::is_empty(given_up));
    QCOMPARE(read_tensorboard(board, never).error().code, ErrorCode::cancelled);
    const auto log = read_tensorboard(board);
    QVERIFY(log.has_value());
    // 2026-11-23T06:00:00Z is 1795413600 seconds after 1970.
    QCOMPARE(log->front().scalars.at("lm loss").at(1), (LoggedScalar{2, 1795413602.0, 1.0}));
    QCOMPARE(log->front().scalars.at("batch-size").at(1).value, 8.0);
    QCOMPARE(log->front().scalars.at("lm loss vs samples").at(1).step, 16);
    const fs::path again = fresh();
    QVERIFY(import_one(log->front(), board, again, {}).has_value());
    QCOMPARE(read_course(again).value().updates.at(2).samples, 16);
  }

  /// Samples and rates that were not logged are not invented on export.
  void what_a_log_does_not_say_is_not_exported() {
    RunLog log;
    log.scalars = {{"loss", {{1, 1.0, 3.0}, {2, 2.0, 2.0}}}};
    const fs::path run = fresh(), board = fresh();
    QVERIFY(import_one(log, "log", run, {}).has_value());
    QVERIFY(export_tensorboard(run, board).has_value());
    const RunLog back = read_tensorboard(board).value().front();
    for (const char* tag : {"learning-rate", "grad-norm", "batch-size", "lm loss vs samples"})
      QVERIFY2(!back.scalars.contains(tag), tag);
    QCOMPARE(back.scalars.at("lm loss").size(), std::size_t{2});
    QVERIFY(back.problems.empty());
  }

  /// That of weights before the first update, and one behind the last.
  void evaluations_without_an_update_go_out_as_well() {
    const fs::path run = two_ranks(fresh());
    auto writer = RunWriter::reopen(run).value();
    for (const auto& [update, loss] : std::map<std::int64_t, double>{{0, 4.0}, {2, 3.0}, {5, 2.0}})
      writer.append({.rank = 0, .seq = writer.next_seq().at(0), .body = Evaluation{.update = update, .loss = loss}})
          .value();
    const fs::path board = fresh();
    QCOMPARE(export_tensorboard(run, board).value().evaluations, 3);
    const RunLog log = read_tensorboard(board).value().front();
    const std::vector<LoggedScalar> expected = {{0, 1795413600.0, 4.0}, {2, 1795413602.0, 3.0}, {5, 1795413602.0, 2.0}};
    QCOMPARE(log.scalars.at("lm loss validation"), expected);
    const std::vector<LoggedScalar> samples = {{0, 1795413600.0, 4.0}, {16, 1795413602.0, 2.0}};
    QCOMPARE(log.scalars.at("lm loss validation vs samples"), samples);
  }

  /// Every event meets the trace-event format, and the spans are in their places.
  void a_trace_follows_the_format() {
    std::map<QString, int> phases;
    std::map<std::pair<int, int>, double> ends;
    for (const QJsonValue& value : trace_of(two_ranks(fresh()))) {
      const QJsonObject event = value.toObject();
      const QString phase = event["ph"].toString();
      ++phases[phase];
      QVERIFY(event["name"].isString() && event["pid"].isDouble() && event["tid"].isDouble());
      if (phase == "M") {
        QVERIFY(event["args"].isObject());
        continue;
      }
      QVERIFY(event["ts"].isDouble() && event["cat"].isString());
      if (phase != "X") {
        QVERIFY((QStringList{"s", "t", "f"}.contains(phase)) && event["id"].isDouble());
        continue;
      }
      QVERIFY(event["dur"].toDouble() >= 0.0);
      double& end = ends[{event["pid"].toInt(), event["tid"].toInt()}];
      QVERIFY(event["ts"].toDouble() >= end);  // spans of one track lie apart
      end = event["ts"].toDouble() + event["dur"].toDouble();
    }
    QCOMPARE(phases["X"], 12);
    QCOMPARE(phases["s"], 2);  // a flow for each collective, from the rank that came first to the one that came last
    QCOMPARE(phases["f"], 2);
    QCOMPARE(ends.size(), std::size_t{4});
  }

  void a_trace_says_what_each_span_is() {
    QJsonObject reduced, computed, flow;
    for (const QJsonValue& value : trace_of(two_ranks(fresh()))) {
      const QJsonObject event = value.toObject();
      if (event["name"] == "all_reduce" && event["ph"] == "X" && event["pid"] == 1) reduced = event;
      if (event["name"] == "backward" && event["pid"] == 1) computed = event;
      if (event["ph"] == "f") flow = event;
    }
    QCOMPARE(reduced["args"].toObject()["bytes"].toInt(), 4096);
    QCOMPARE(reduced["args"].toObject()["micro_step"].toInt(), 2);
    QCOMPARE(reduced["args"].toObject()["purpose"].toString(), QStringLiteral("gradients"));
    QCOMPARE(reduced["cat"].toString(), "data");
    QCOMPARE(reduced["ts"].toDouble(), 16.5);  // microseconds
    QCOMPARE(reduced["dur"].toDouble(), 0.5);
    QCOMPARE(computed["dur"].toDouble(), 3.0);
    QCOMPARE(flow["pid"].toInt(), 1);
    QCOMPARE(flow["tid"], reduced["tid"]);
    QCOMPARE(flow["bp"].toString(), "e");
  }

  void what_a_resumed_run_did_again_is_in_the_trace_once() {
    int spans = 0;
    for (const QJsonValue& value : trace_of(two_ranks(fresh(), true)))
      if (value["ph"] == "X") ++spans;
    QCOMPARE(spans, 12);
  }

  void an_export_that_is_given_up_leaves_no_file() {
    const fs::path run = two_ranks(fresh());
    const fs::path folder = fresh();
    fs::create_directories(folder);
    const auto given_up = write_chrome_trace(run, folder / "trace.json", [](double done) { return done < 0.6; });
    QVERIFY(!given_up.has_value());
    QCOMPARE(given_up.error().code, ErrorCode::cancelled);
    QVERIFY(fs::is_empty(folder));
    QVERIFY(!write_chrome_trace(folder, folder / "trace.json").has_value());  // no run folder
  }
};

ACCRUE_TEST_MAIN(TestRecordExchange)

}  // namespace test_record_exchange
#include "test_record_exchange.moc"
