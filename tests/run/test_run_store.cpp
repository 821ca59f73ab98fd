// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <set>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/record/run_tally.h"
#include "support/refusals.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_run_store {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;
namespace fs = std::filesystem;

namespace {

constexpr const char* spec_text = "accrue = 1\n[run]\nname = \"a run\"\n";

RunEvent update_event(std::int64_t seq) {
  Update update;
  update.update = seq + 1;
  update.micro_step = 4 * (seq + 1);
  update.samples = 64 * (seq + 1);
  update.loss = 5.0 / static_cast<double>(seq + 1);
  update.seconds = 0.5 * static_cast<double>(seq + 1);
  return {0, seq, 1000 * seq, update};
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

class TestRunStore : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;
  fs::path fresh() { return fs::path(temporary_.path().toStdString()) / ("run" + std::to_string(++count_)); }

 private Q_SLOTS:
  void a_run_without_a_name_is_called_by_what_it_trains_data() {
    const Rows<QByteArray, QByteArray, QByteArray> row;
    row("named", "mine", "", "mine");
    row("a model of a kind", "", "", "mlp N=4 2 ranks");
    row("a library's model", "", "resnet", "resnet N=4 2 ranks");
    row("a library's model, named", "mine", "resnet", "mine");
  }
  void a_run_without_a_name_is_called_by_what_it_trains() {
    const auto [given, provider, name] = current_row<QByteArray, QByteArray, QByteArray>();
    RunSpec spec;
    spec.run.name = given.toStdString();
    spec.model.kind = ModelKind::mlp;
    spec.accumulation.steps = 4;
    spec.parallel.data = 2;
    if (!provider.isEmpty()) spec.megatron.custom_model_provider_function = provider.toStdString();
    QCOMPARE(run_name(spec, spec.accumulation.steps), name.toStdString());
  }

  void a_new_folder_holds_what_a_run_needs() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    QVERIFY2(writer.has_value(), writer ? "" : writer.error().text().c_str());
    QCOMPARE(text_of(dir / "spec.toml"), std::string(spec_text));
    for (const char* name : {"events.jsonl", "run.lock", "ranks", "checkpoints"}) QVERIFY(fs::exists(dir / name));
    struct stat facts {};
    ::stat(dir.c_str(), &facts);
    QCOMPARE(facts.st_mode & 0777, 0700U);
    ::stat((dir / "events.jsonl").c_str(), &facts);
    QCOMPARE(facts.st_mode & 0777, 0600U);
  }

  void a_folder_that_is_not_empty_is_refused_untouched() {
    const auto dir = fresh();
    fs::create_directories(dir);
    std::ofstream(dir / "thesis.tex") << "precious";
    const auto writer = RunWriter::create(dir, spec_text);
    VERIFY_FAILS(writer, ErrorCode::config, "not empty");
    QCOMPARE(text_of(dir / "thesis.tex"), std::string("precious"));
    QVERIFY(!fs::exists(dir / "run.lock"));
  }

  void a_folder_that_holds_a_run_is_refused_with_the_way_on() {
    const auto dir = fresh();
    QVERIFY(RunWriter::create(dir, spec_text)->write_plan("{}").has_value());
    const auto writer = RunWriter::create(dir, spec_text);
    QVERIFY(!writer.has_value());
    QCOMPARE(writer.error().code, ErrorCode::config);
    QVERIFY(writer.error().hint.find("resume") != std::string::npos);
  }

  void a_folder_that_cannot_be_made_is_an_error_with_its_path() {
    const auto writer = RunWriter::create("/proc/nowhere/run", spec_text);
    VERIFY_FAILS(writer, ErrorCode::disk, "/proc/nowhere");
  }

  void a_path_that_is_a_file_is_refused() {
    const auto file = fresh();
    std::ofstream(file) << "x";
    QVERIFY(!RunWriter::create(file, spec_text).has_value());
  }

  void events_are_in_the_file_as_soon_as_they_are_appended() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    for (int i = 0; i < 10; ++i) QVERIFY(writer->append(update_event(i)).has_value());
    const auto history = read_events(dir / "events.jsonl");
    QCOMPARE(history->events.size(), std::size_t{10});
    QVERIFY(history->problems == ReadProblems{});
    QCOMPARE(writer->next_seq().at(0), 10);
    QCOMPARE(writer->last_time_ns(), 9000);
  }

  void two_writers_cannot_hold_one_folder() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    QVERIFY(is_locked(dir));
    const auto second = RunWriter::reopen(dir);
    QVERIFY(!second.has_value());
    QVERIFY(second.error().text().find("another process") != std::string::npos);
    writer = tl::unexpected(Error{});
    QVERIFY(!is_locked(dir));
    QVERIFY(RunWriter::reopen(dir).has_value());
  }

  void the_lock_lives_as_long_as_a_copy_of_its_descriptor() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    const int inherited = ::dup(writer->lock_fd());
    writer = tl::unexpected(Error{});
    QVERIFY(is_locked(dir));
    ::close(inherited);
    QVERIFY(!is_locked(dir));
  }

  void reopening_cuts_the_torn_line_and_continues_every_rank() {
    const auto dir = fresh();
    {
      auto writer = RunWriter::create(dir, spec_text);
      for (int i = 0; i < 5; ++i) QVERIFY(writer->append(update_event(i)).has_value());
      RunEvent other = update_event(2);
      other.rank = 1;
      QVERIFY(writer->append(other).has_value());
    }
    std::ofstream(dir / "events.jsonl", std::ios::app) << "{\"v\":2,\"kind\":\"upd";
    std::ofstream(dir / "summary.json") << "{}";
    auto writer = RunWriter::reopen(dir);
    QVERIFY(writer.has_value());
    QCOMPARE(writer->next_seq().at(0), 5);
    QCOMPARE(writer->next_seq().at(1), 3);
    QVERIFY(!fs::exists(dir / "summary.json"));
    QVERIFY(writer->append(update_event(5)).has_value());
    const auto history = read_events(dir / "events.jsonl");
    QCOMPARE(history->events.size(), std::size_t{7});
    QCOMPARE(history->problems.unreadable_lines, 0);
    QVERIFY(!history->problems.torn_last_line);
  }

  void an_event_is_stored_as_the_line_it_came_in() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    const std::string received = R"({"v": 2, "kind": "update", "rank": 0, "seq": 0, "later": [1, 2.50]})";
    QVERIFY(writer->append(update_event(0), received).has_value());
    QVERIFY(writer->append(update_event(1)).has_value());
    QCOMPARE(text_of(dir / "events.jsonl"), received + "\n" + encode_event(update_event(1)) + "\n");
    QCOMPARE(writer->next_seq().at(0), 2);
  }

  void reopening_reads_lines_of_another_writer_and_passes_over_damaged_ones() {
    const auto dir = fresh();
    QVERIFY(RunWriter::create(dir, spec_text).has_value());
    std::ofstream(dir / "events.jsonl", std::ios::app)
        << R"({"kind": "dream", "time_ns": 77, "seq": 11, "rank": 3, "v": 2})"
        << "\n"
        << "garbage\n"
        << std::string((1 << 20) + 100, 'x') << "\n"
        << encode_event(update_event(4)) << "\n";
    auto writer = RunWriter::reopen(dir);
    QVERIFY(writer.has_value());
    QCOMPARE(writer->next_seq().at(3), 12);
    QCOMPARE(writer->next_seq().at(0), 5);
    QCOMPARE(writer->last_time_ns(), 4000);
  }

  void a_folder_of_another_version_is_refused_untouched_data() {
    QTest::addColumn<int>("other");
    QTest::newRow("older") << event_format_version - 1;
    QTest::newRow("newer") << event_format_version + 1;
  }
  void a_folder_of_another_version_is_refused_untouched() {
    QFETCH(int, other);
    const auto dir = fresh();
    QVERIFY(RunWriter::create(dir, spec_text).has_value());
    std::ofstream(dir / "events.jsonl", std::ios::app)
        << "{\"v\":" << other << R"(,"kind":"update","rank":0,"seq":0,"time_ns":1,"brave":"new"})"
        << "\n{torn";
    const auto before = text_of(dir / "events.jsonl");
    const auto writer = RunWriter::reopen(dir);
    VERIFY_FAILS(writer, ErrorCode::protocol, "version " + std::to_string(other));
    QVERIFY(writer.error().message.find("version " + std::to_string(event_format_version)) != std::string::npos);
    QVERIFY(!writer.error().hint.empty());
    QCOMPARE(text_of(dir / "events.jsonl"), before);
  }

  void a_folder_that_is_no_run_is_refused() {
    const auto dir = fresh();
    fs::create_directories(dir);
    const auto writer = RunWriter::reopen(dir);
    QVERIFY(!writer.has_value());
    QVERIFY(!fs::exists(dir / "run.lock"));
    QVERIFY(!read_run(dir).has_value());
  }

  /// A limit on file sizes simulates a full disk: the system answers a write with an error in the middle of a line.
  void a_full_disk_leaves_whole_lines() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    QVERIFY(writer->append(update_event(0)).has_value());
    const auto size = fs::file_size(dir / "events.jsonl");
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight = before;
    tight.rlim_cur = size + 20;
    ::setrlimit(RLIMIT_FSIZE, &tight);
    const auto full = writer->append(update_event(1));
    ::setrlimit(RLIMIT_FSIZE, &before);
    VERIFY_FAILS(full, ErrorCode::disk, "File too large: a file may hold at most");
    QVERIFY(writer->reserve_spent());
    QCOMPARE(fs::file_size(dir / "events.jsonl"), size);
    QVERIFY(writer->append(update_event(1)).has_value());
    const auto history = read_events(dir / "events.jsonl");
    QCOMPARE(history->events.size(), std::size_t{2});
    QCOMPARE(history->problems.unreadable_lines, 0);
  }

  void a_log_grows_to_its_limit_and_tells_what_it_dropped() {
    const auto dir = fresh();
    {
      auto writer = RunWriter::create(dir, spec_text);
      QVERIFY(writer->append_log(1, "hello\n").has_value());
      const std::string chunk(1 << 20, 'y');
      for (int i = 0; i < 70; ++i) QVERIFY(writer->append_log(1, chunk).has_value());
    }
    const auto text = text_of(dir / "ranks" / "1.log");
    QVERIFY(text.starts_with("hello\n"));
    QVERIFY(text.size() < (64U << 20) + 200);
    QVERIFY(text.find("were dropped") != std::string::npos);
  }

  void the_plan_is_replaced_at_once_and_leaves_nothing_aside() {
    const auto dir = fresh();
    auto writer = RunWriter::create(dir, spec_text);
    QVERIFY(writer->write_plan("{\"a\":1}").has_value());
    QVERIFY(writer->write_plan("{\"a\":2}").has_value());
    QCOMPARE(text_of(dir / "plan.json"), std::string("{\"a\":2}"));
    for (const auto& entry : fs::directory_iterator(dir))
      QVERIFY2(entry.path().filename().string().find(".part") == std::string::npos, entry.path().c_str());
  }

  void a_run_without_an_end_is_interrupted_and_tells_how_far_it_came() {
    const auto dir = fresh();
    {
      auto writer = RunWriter::create(dir, spec_text);
      RunStarted started;
      started.run = "id-1";
      started.started_at = "2026-11-21T10:00:00Z";
      started.plan_json = started.versions_json = started.host_json = "{}";
      QVERIFY(writer->append({supervisor_rank, 0, 0, started}).has_value());
      for (int i = 0; i < 30; ++i) QVERIFY(writer->append(update_event(i)).has_value());
      QCOMPARE(read_run(dir)->state, std::string("running"));
    }
    fs::create_directories(dir / "checkpoints" / "step-10");
    fs::create_directories(dir / "checkpoints" / "step-9");
    fs::create_directories(dir / "checkpoints" / ".step-20.part");
    fs::create_directories(dir / "checkpoints" / "step-25");  // no manifest: never committed
    std::ofstream(dir / "checkpoints" / "step-10" / "manifest.json") << "{}";
    std::ofstream(dir / "checkpoints" / "step-9" / "manifest.json") << "{}";
    const auto run = read_run(dir);
    QVERIFY(run.has_value());
    QCOMPARE(run->state, std::string("interrupted"));
    QCOMPARE(run->run_id, std::string("id-1"));
    QCOMPARE(run->name, std::string("a run"));
    QCOMPARE(run->updates, 30);
    QCOMPARE(run->samples, 64 * 30);
    QCOMPARE(run->last_checkpoint, std::string("step-10"));
    QCOMPARE(run->started_at, std::string("2026-11-21T10:00:00Z"));
  }

  /// The newest manifest names it; where it is gone, an earlier one.
  void the_best_checkpoint_is_found_by_name() {
    const auto dir = fresh();
    QVERIFY(RunWriter::create(dir, std::string(spec_text) + "[checkpoint]\nbest = \"validation loss\"\n").has_value());
    const auto put = [&](const char* name, const char* cursor) {
      fs::create_directories(dir / "checkpoints" / name);
      std::ofstream(dir / "checkpoints" / name / "manifest.json") << "{\"cursor\": " << cursor << "}";
    };
    QVERIFY(!read_run(dir)->best);
    put("step-70", R"({"kept_update": 70, "best_loss": 3})");
    std::ofstream(dir / "plan.json") << R"({"branched_at": 70})";
    QVERIFY(!read_run(dir)->best);  // copied from another run
    std::ofstream(dir / "plan.json") << R"({"branched_at": -1})";
    QCOMPARE(named_checkpoint(dir, "best").update, 70);
    put("step-90", R"({"kept_update": 90, "best_loss": 2.31})");
    put("step-100", R"({"kept_update": 90, "best_loss": 2.30})");  // itself it was not kept
    put("step-105", R"({"kept_update": 104, "best_loss": 2.30})");
    put("step-110", "7");  // damaged
    QCOMPARE(checkpoint_name(read_run(dir)->best->mark), std::string("step-90"));
    QCOMPARE(read_run(dir)->best->loss, 2.31);
    QVERIFY(to_json(*read_run(dir)).find(R"("name": "step-90")") != std::string::npos);
    QCOMPARE(named_checkpoint(dir, "best").update, 90);
    QCOMPARE(named_checkpoint(dir, "step-70").update, 70);
    put("step-120", R"({"kept_update": 0})");  // of a branch that has not evaluated yet
    QVERIFY(!named_checkpoint(dir, "best").valid());
  }

  void the_end_of_a_long_run_is_found_without_its_middle() {
    const auto dir = fresh();
    {
      auto writer = RunWriter::create(dir, spec_text);
      for (int i = 0; i < 12000; ++i) QVERIFY(writer->append(update_event(i)).has_value());
    }
    QVERIFY(fs::file_size(dir / "events.jsonl") > (2U << 20));
    QCOMPARE(read_run(dir)->updates, 12000);
  }

  /// Without a summary its events say it.
  void the_loss_is_that_of_the_last_window_with_a_label() {
    const auto dir = fresh();
    {
      auto writer = RunWriter::create(dir, spec_text);
      const auto append = [&](std::int64_t number, double loss, StepOutcome outcome, std::int64_t empty) {
        Update update{.update = number, .loss = loss, .outcome = outcome};
        update.empty_windows = empty;
        update.overflowed_windows = 1;
        QVERIFY(writer->append({0, number, number, update}).has_value());
      };
      append(1, 0.5, StepOutcome::updated, 0);
      append(2, 0.25, StepOutcome::skipped_overflow, 0);
      append(3, 0.0, StepOutcome::skipped_empty, 1);
      append(4, 0.0, StepOutcome::skipped_empty, 2);
    }
    const auto run = read_run(dir);
    QCOMPARE(run->loss, 0.25);
    QCOMPARE(run->updates, 4);
    QCOMPARE(run->empty_windows, 2);
    QCOMPARE(run->overflowed_windows, 1);
    QVERIFY(run->has_loss());
  }

  void a_summary_reads_back_as_written() {
    const auto dir = fresh();
    RunSummary written;
    {
      auto writer = RunWriter::create(dir, spec_text);
      written.run_id = "id";
      written.state = "failed";
      written.updates = 12;
      written.planned_updates = 100;
      written.loss = std::numeric_limits<double>::quiet_NaN();
      written.empty_windows = 3;
      written.overflowed_windows = 2;
      written.seconds = 12.0;
      written.paused_seconds = 4.0;
      written.exactness = ExactnessCheck{
          .update = 7, .relative = 0.25, .tolerance = 1e-6, .verdict = "not", .reason = "bug", .message = "Means"};
      written.weights_sha256 = "abcd";
      written.message = "Rank 1 was killed";
      QVERIFY(writer->write_summary(written).has_value());
    }
    const auto read = read_run(dir);
    QCOMPARE(read->state, std::string("failed"));
    QCOMPARE(read->updates, 12);
    QCOMPARE(read->planned_updates, 100);
    QVERIFY(std::isnan(read->loss));
    QCOMPARE(read->empty_windows, 3);
    QCOMPARE(read->overflowed_windows, 2);
    QCOMPARE(read->paused_seconds, written.paused_seconds);
    QVERIFY(read->exactness == written.exactness);
    QCOMPARE(read->weights_sha256, written.weights_sha256);
    QCOMPARE(read->message, written.message);
  }

  void a_tally_has_pauses_up_to_the_newest_update_and_the_check_that_decides() {
    RunTally tally;
    const auto at = [&tally](double seconds, std::int64_t rank, EventBody body) {
      tally.take({rank, 0, static_cast<std::int64_t>(seconds * 1e9), std::move(body)});
    };
    QVERIFY(!tally.worst_check());
    at(1, 0, Update{.update = 1});
    at(2, supervisor_rank, StateChanged{.state = "paused"});
    at(3, supervisor_rank, StateChanged{.state = "paused", .detail = "one step on"});
    at(5, supervisor_rank, StateChanged{.state = "running"});
    QCOMPARE(tally.paused_seconds(), 0.0);
    at(6, 1, Update{.update = 2});
    QCOMPARE(tally.paused_seconds(), 0.0);
    at(6, 0, Update{.update = 2});
    QCOMPARE(tally.paused_seconds(), 3.0);
    at(7, supervisor_rank, StateChanged{.state = "paused"});
    at(9, supervisor_rank, StateChanged{.state = "stopping"});
    QCOMPARE(tally.paused_seconds(), 3.0);  // no update's seconds count it
    for (const auto& [update, verdict] : {std::pair(1, "exact"), std::pair(2, "not"), std::pair(3, "exact")})
      at(10, 0, ExactnessCheck{.update = update, .verdict = verdict});
    QCOMPARE(tally.worst_check()->update, 2);
    RunTally later(tally.paused_seconds(), tally.worst_check());
    later.take({0, 0, 0, ExactnessCheck{.update = 4, .verdict = "exact"}});
    QCOMPARE(later.worst_check()->update, 2);
    QCOMPARE(later.paused_seconds(), 3.0);
  }

  void runs_are_listed_newest_first_and_other_folders_left_out() {
    const auto runs = fresh();
    for (const char* name : {"a", "b", "c"}) {
      auto writer = RunWriter::create(runs / name, spec_text);
      RunSummary summary;
      summary.state = "finished";
      summary.started_at = std::string("2026-11-2") + (name[0] == 'b' ? "9" : "1") + "T00:00:00Z";
      QVERIFY(writer->write_summary(summary).has_value());
    }
    fs::create_directories(runs / "holiday pictures");
    const auto listed = list_runs(runs);
    QCOMPARE(listed.size(), std::size_t{3});
    QCOMPARE(listed.front().dir.filename().string(), std::string("b"));
    QVERIFY(list_runs(runs / "nowhere").empty());
  }

  void run_ids_differ_and_are_fit_for_names() {
    std::set<std::string> ids;
    for (int i = 0; i < 200; ++i) ids.insert(new_run_id());
    QCOMPARE(ids.size(), std::size_t{200});
    for (const auto& id : ids)
      QVERIFY(QRegularExpression("^[0-9]{8}-[0-9]{6}-[a-z0-9]+$").match(id.c_str()).hasMatch());
  }
};

ACCRUE_TEST_MAIN(TestRunStore)

}  // namespace test_run_store
#include "test_run_store.moc"
