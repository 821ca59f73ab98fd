// SPDX-License-Identifier: Apache-2.0
// The supervisor over real ranks, where only they can go wrong: disks that are slow, processes that are stopped, frozen
// or killed, and signals that reach all of them. Time-outs are a fraction of the shipped ones, in the same proportions.
#include <signal.h>

#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>
#include <cstring>
#include <fstream>
#include <iterator>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "run/host_fixture.h"
#include "support/listeners.h"
#include "support/programs.h"
#include "support/test_program.h"

namespace test_supervised_ranks {

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// Shipped: a stall after 30 s, an exchange given up after 60 s, syncs of 45 s and 70 s.
constexpr double stall_s = 2.0;
constexpr double collective_s = 4.0;
constexpr int long_sync_ms = 3000;
constexpr int longer_sync_ms = 4700;

EngineHostOptions real_options() {
  EngineHostOptions options;
  options.rank_program = test::programPath("accrue-rank").toStdString();
  options.stop_grace = 1s;
  return options;
}

RunPlan real_plan(const PlanOptions& asked) {
  PlanOptions options = asked;
  options.stall_timeout_s = stall_s;
  options.join_timeout_s = 60.0;
  RunPlan plan = small_plan(options);
  plan.spec.launch.collective_timeout_s = collective_s;
  return plan;
}

/// Ranks whose fdatasync of certain files is slow. The supervisor's own disk is not: it is not the one that trains.
class SlowRanks {
 public:
  SlowRanks(const fs::path& folder, const char* file, int milliseconds) : program_(folder / "slow-rank") {
    std::ofstream script(program_);
    script << "#!/bin/sh\nLD_PRELOAD=" << test::programPath("libaccrue_slow_sync.so").toStdString()
           << " ACCRUE_SLOW_SYNC_FILE=" << file << " ACCRUE_SLOW_SYNC_MS=" << milliseconds << " exec "
           << test::programPath("accrue-rank").toStdString() << " \"$@\"\n";
    script.close();
    fs::permissions(program_, fs::perms::owner_all);
  }
  EngineHostOptions options() const {
    EngineHostOptions options = real_options();
    options.rank_program = program_.string();
    return options;
  }

 private:
  fs::path program_;
};

/// accrue-run with real ranks, as a process of its own.
class RunProcess : public test::Program {
 public:
  RunProcess(const fs::path& dir, const QStringList& settings)
      : Program(test::programPath("accrue-run"), arguments(dir, settings)) {}
  bool trains() { return says("update 1/", 60000); }
  bool ends_with(int status) { return finish(60000).status == status; }

 private:
  static QStringList arguments(const fs::path& dir, const QStringList& settings) {
    const fs::path spec = dir.string() + ".accrue";
    std::ofstream(spec) << write_spec(small_plan({.updates = 10'000'000}).spec);
    QStringList words{"run", QString::fromStdString(spec.string()), "--out", QString::fromStdString(dir.string())};
    for (const auto& setting : settings) words += {"--set", setting};
    return words;
  }
};

/// The last value under a tag in a folder's TensorBoard files; -1: none. The number is a fixed 32-bit field behind the
/// tag.
double last_scalar(const fs::path& folder, const std::string& tag) {
  float value = -1.0F;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const std::string field = tag + '\x15';
    const std::size_t at = bytes.rfind(field);
    if (at != std::string::npos && at + field.size() + sizeof value <= bytes.size())
      std::memcpy(&value, bytes.data() + at + field.size(), sizeof value);
  }
  return static_cast<double>(value);
}

std::vector<pid_t> ranks_in(const fs::path& dir) {
  std::vector<pid_t> pids;
  std::ifstream events(dir / "events.jsonl");
  for (std::string line; std::getline(events, line);) {
    const auto event = QJsonDocument::fromJson(QByteArray::fromStdString(line)).object();
    if (event["kind"] == "rank_ready") pids.push_back(static_cast<pid_t>(event["pid"].toInt()));
  }
  return pids;
}

}  // namespace

class TestSupervisedRanks : public QObject {
  Q_OBJECT
  HostHome home_;
  fs::path fresh() { return home_.fresh(); }

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  /// Another user of the machine finds no door: the ranks share memory and a store that they inherit.
  void no_process_of_a_run_listens_on_tcp() {
    const auto dir = fresh();
    RunProcess run(dir, {"parallel.backend=shm"});
    QVERIFY2(run.trains(), run.errors());
    const auto ranks = ranks_in(dir);
    QCOMPARE(ranks.size(), std::size_t{2});
    const auto found = test::listeners_of({run.pid(), ranks[0], ranks[1]});
    QCOMPARE(found.loopback, 0);
    QVERIFY2(found.beyond.isEmpty(), found.beyond.value(0).constData());
    run.signal(SIGINT);
    QVERIFY2(run.ends_with(130), run.errors());
  }

  /// Memory that the supervisor used before it started a rank does not count for the rank.
  void a_ranks_peak_of_memory_is_its_own() {
    constexpr std::size_t much = std::size_t{1} << 30;
    const std::vector<char> filled(much, 'x');
    const auto dir = fresh(), board = home_.path() / "board";
    RunPlan plan = real_plan({.updates = 3});
    plan.spec.run.tensorboard_dir = board.string();
    WatchedHost host(real_options());
    QVERIFY(host.start({plan, dir}).has_value());
    VERIFY_STORY(host.ends("finished", 0, 60s));
    const double most = last_scalar(board, "mem-max-allocated-bytes");
    QVERIFY2(most > 0.0 && most < static_cast<double>(much), qPrintable(QString::number(most)));
    QCOMPARE(filled.back(), 'x');
  }

  void a_stop_finishes_its_checkpoint_on_a_slow_disk_data() {
    QTest::addColumn<int>("milliseconds");
    QTest::newRow("longer than a stall") << long_sync_ms;
    QTest::newRow("longer than an exchange") << longer_sync_ms;
  }
  void a_stop_finishes_its_checkpoint_on_a_slow_disk() {
    QFETCH(int, milliseconds);
    const SlowRanks ranks(home_.path(), "shard-0", milliseconds);
    const auto dir = fresh();
    WatchedHost host(ranks.options());
    QVERIFY(host.start({real_plan({.updates = 10'000'000}), dir}).has_value());
    VERIFY_STORY(host.wait_for<Update>(60s));
    host.checkpoint_and_stop();
    VERIFY_STORY(host.ends("stopped", 130, 60s));
    VERIFY_STORY(!host.warned_of_a_hang());
    QCOMPARE(QString::fromStdString(read_run(dir)->last_checkpoint), QStringLiteral("step-%1").arg(host.end->updates));
    const auto saved = host.wait_for<CheckpointDone>(0ms);
    VERIFY_STORY(saved && saved->seconds >= milliseconds / 1000.0);  // it was slow
  }

  void a_scheduled_checkpoint_on_a_slow_disk_is_neither_a_stall_nor_a_lost_peer() {
    const SlowRanks ranks(home_.path(), "shard-0", longer_sync_ms);
    WatchedHost host(ranks.options());
    QVERIFY(host.start({real_plan({.updates = 3, .checkpoint_every = 2}), fresh()}).has_value());
    VERIFY_STORY(host.ends("finished", 0, 60s));
    VERIFY_STORY(!host.warned_of_a_hang());
    const auto slow = host.wait_for<Warning>(0ms);
    VERIFY_STORY(slow && slow->class_name == "slow");
  }

  void the_final_model_on_a_slow_disk_is_waited_for() {
    const SlowRanks ranks(home_.path(), "model.safetensors", longer_sync_ms);
    const auto dir = fresh();
    WatchedHost host(ranks.options());
    QVERIFY(host.start({real_plan({.updates = 3}), dir}).has_value());
    VERIFY_STORY(host.ends("finished", 0, 60s));
    VERIFY_STORY(!host.warned_of_a_hang());
    const auto slow = host.wait_for<Warning>(0ms);
    VERIFY_STORY(slow && slow->class_name == "slow" && slow->message.find("final model") != std::string::npos);
    QVERIFY(fs::exists(dir / "final" / "model.safetensors"));
  }

  void a_stopped_rank_is_named_every_time_and_never_the_one_that_waits_for_it() {
    WatchedHost host(real_options());
    RunPlan plan = real_plan({.updates = 10'000'000});
    plan.spec.launch.collective_timeout_s = 60.0;
    QVERIFY(host.start({plan, fresh()}).has_value());
    VERIFY_STORY(host.wait_for<Update>(60s));
    const auto pids = host.rank_pids();
    for (std::int64_t trial = 0; trial < 20; ++trial) {
      const std::int64_t rank = trial % 2;
      host.forget();
      ::kill(pids.at(rank), SIGSTOP);
      const auto warning = host.wait_for<Warning>([](const Warning& each) { return each.class_name == "hang"; });
      ::kill(pids.at(rank), SIGCONT);
      VERIFY_STORY(warning && warning->message.starts_with("Rank " + std::to_string(rank) + " made no progress"));
      VERIFY_STORY(host.wait_for_state("running"));
      VERIFY_STORY(host.wait_for<Update>());
    }
  }

  void a_rank_that_the_others_gave_up_waiting_for_is_the_failure_data() {
    QTest::addColumn<int>("culprit");
    QTest::newRow("rank 0") << 0;
    QTest::newRow("rank 1") << 1;
  }
  void a_rank_that_the_others_gave_up_waiting_for_is_the_failure() {
    QFETCH(int, culprit);
    WatchedHost host(real_options());
    QVERIFY(host.start({real_plan({.updates = 10'000'000}), fresh()}).has_value());
    VERIFY_STORY(host.wait_for<Update>(60s));
    ::kill(host.rank_pids().at(culprit), SIGSTOP);
    VERIFY_STORY(host.ends("failed", 4, 30s));
    QCOMPARE(host.all_of<RankFailed>().size(), std::size_t{1});
    const auto failed = host.wait([](const RunEvent& event) { return std::holds_alternative<RankFailed>(event.body); });
    QCOMPARE(failed->rank, static_cast<std::int64_t>(culprit));
    const auto& body = std::get<RankFailed>(failed->body);
    QCOMPARE(body.class_name, std::string("hang"));
    QVERIFY2(body.message.find("gave up waiting for it") != std::string::npos, body.message.c_str());
  }

  void a_rank_killed_inside_a_checkpoint_is_reported_there() {
    const SlowRanks ranks(home_.path(), "shard-0", 100);
    for (const std::int64_t rank : {0, 1, 0, 1}) {
      const auto dir = fresh();
      WatchedHost host(ranks.options());
      QVERIFY(host.start({real_plan({.updates = 10'000'000}), dir}).has_value());
      VERIFY_STORY(host.wait_for<Update>(60s));
      const auto pid = host.rank_pids().at(rank);
      host.checkpoint();
      const auto is_writing = [&dir] {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(dir / "checkpoints", error))
          if (fs::exists(entry.path() / "shard-0.safetensors", error)) return true;
        return false;
      };
      QVERIFY(eventually(is_writing));
      ::kill(pid, SIGKILL);
      const auto failed = host.wait_for<RankFailed>();
      VERIFY_STORY(failed && failed->phase == "checkpoint");
      VERIFY_STORY(failed->message.find("in phase \"checkpoint\"") != std::string::npos);
    }
  }

  void signals_to_the_whole_tree_end_in_a_checkpoint_from_which_the_run_goes_on_data() {
    QTest::addColumn<int>("number");
    QTest::newRow("TERM") << SIGTERM;
    QTest::newRow("HUP") << SIGHUP;
  }
  void signals_to_the_whole_tree_end_in_a_checkpoint_from_which_the_run_goes_on() {
    QFETCH(int, number);
    const auto dir = fresh();
    RunProcess run(dir, {});
    QVERIFY2(run.trains(), run.errors());
    const auto ranks = ranks_in(dir);
    QCOMPARE(ranks.size(), std::size_t{2});
    QElapsedTimer since;
    since.start();
    for (const pid_t rank : ranks) ::kill(rank, number);
    run.signal(number);
    QVERIFY2(run.ends_with(130), run.errors());
    QVERIFY2(since.elapsed() < 30000, qPrintable(QStringLiteral("ended after %1 ms").arg(since.elapsed())));
    const auto stopped = read_run(dir);
    QCOMPARE(stopped->state, std::string("stopped"));
    QCOMPARE(stopped->last_checkpoint, "step-" + std::to_string(stopped->updates));
    WatchedHost host(real_options());
    QVERIFY(host.resume(dir).has_value());
    const auto update = host.wait_for<Update>(60s);
    VERIFY_STORY(update && update->update == stopped->updates + 1);
  }

  void a_tree_frozen_longer_than_the_time_outs_goes_on_when_thawed() {
    const auto dir = fresh();
    RunProcess run(dir, {"launch.collective_timeout_s=3", "launch.stall_timeout_s=3"});
    QVERIFY2(run.trains(), run.errors());
    const auto ranks = ranks_in(dir);
    QCOMPARE(ranks.size(), std::size_t{2});
    for (int round = 0; round < 3; ++round) {
      run.signal(SIGSTOP);
      for (const pid_t rank : ranks) ::kill(rank, SIGSTOP);
      QVERIFY(eventually([&] { return std::all_of(ranks.begin(), ranks.end(), is_stopped); }));
      const auto frozen_at = newest_update(dir);
      QVERIFY(!eventually([] { return false; }, 5s));  // the freeze itself
      for (const pid_t rank : ranks) ::kill(rank, SIGCONT);
      run.signal(SIGCONT);
      QVERIFY2(eventually([&] { return newest_update(dir) > frozen_at + 1; }, 20s), run.errors());
    }
    QVERIFY2(!run.says("no progress", 0), run.errors());
    run.signal(SIGTERM);
    QVERIFY2(run.ends_with(130), run.errors());
  }

  /// The supervisor stands still, the ranks train on, and their memory stays as it is.
  void ranks_of_a_stopped_supervisor_stay_small_and_say_what_they_left_out() {
    const auto dir = fresh();
    RunProcess run(dir, {"run.record_weights=true", "model.hidden=[32]", "checkpoint.every_updates=500"});
    QVERIFY2(run.trains(), run.errors());
    const auto ranks = ranks_in(dir);
    QCOMPARE(ranks.size(), std::size_t{2});
    run.signal(SIGSTOP);
    const auto before = resident_bytes(ranks.front());
    const auto saved_then = newest_checkpoint(dir).update;
    // They train and save on: what they would have said by then is more than they may keep.
    QVERIFY(eventually([&] { return newest_checkpoint(dir).update >= saved_then + 3000; }, 120s));
    const auto after = resident_bytes(ranks.front());
    run.signal(SIGCONT);
    QVERIFY2(after < before + (64 << 20), qPrintable(QStringLiteral("%1 to %2").arg(before).arg(after)));
    QVERIFY2(run.says("events were left out", 20000), run.errors());
    run.signal(SIGTERM);
    QVERIFY2(run.ends_with(130), run.errors());
    QVERIFY2(!run.says("skipped", 0), run.errors());
  }

  void a_run_that_ends_early_says_why_and_its_best_checkpoint_can_be_named() {
    const auto dir = fresh();
    const auto branch = fresh();
    RunProcess run(dir, {"data.validation_fraction=0.25", "evaluate.every_updates=1", "run.stop_when=validation loss",
                         "run.least_improvement=1000", "checkpoint.best=validation loss"});
    QVERIFY2(run.ends_with(0), run.errors());
    const char* const ended =
        "Finished after update 4 of 10000000: the validation loss has not improved by more than 1000 for 3 "
        "evaluations; the best was ";
    QVERIFY2(run.says(ended, 0), run.errors());
    const auto accrue_run = [](const QStringList& words) {
      return test::Program(test::programPath("accrue-run"), words).finish(60000);
    };
    const QString folder = QString::fromStdString(dir.string());
    const auto summary = read_run(dir);
    QVERIFY(summary && summary->best && summary->message.starts_with(ended));
    const QString best = QString::fromStdString(checkpoint_name(summary->best->mark));
    QVERIFY(accrue_run({"show", folder}).out.contains("\nbest         " + best + ", validation loss "));
    const auto complete = accrue_run({"resume", folder});
    QVERIFY2(complete.err.contains("--set run.patience=..."), qPrintable(complete.err));
    const auto branched =
        accrue_run({"resume", folder, "--from", "best", "--out", QString::fromStdString(branch.string())});
    QVERIFY2(branched.status == 0, qPrintable(branched.err));
    QCOMPARE(read_run(branch)->updates, summary->best->mark.update + 4);
  }

 private:
  static bool is_stopped(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto name_end = text.rfind(')');
    return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'T';
  }
  static std::int64_t resident_bytes(pid_t pid) {
    std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
    std::int64_t pages = 0;
    std::int64_t resident = 0;
    statm >> pages >> resident;
    return resident * 4096;
  }
  static CheckpointMark newest_checkpoint(const fs::path& dir) {
    const auto run = read_run(dir);
    return run ? checkpoint_mark(run->last_checkpoint) : CheckpointMark{};
  }
  static std::int64_t newest_update(const fs::path& dir) {
    const auto run = read_run(dir);
    return run ? run->updates : 0;
  }
};

ACCRUE_TEST_MAIN(TestSupervisedRanks)

}  // namespace test_supervised_ranks
#include "test_supervised_ranks.moc"
