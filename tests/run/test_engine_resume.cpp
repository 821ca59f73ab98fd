// SPDX-License-Identifier: Apache-2.0
// Continued runs: restarted by the supervisor, resumed by a user, replayed, and refused if they must not continue.
#include <sys/stat.h>

#include <QTest>
#include <filesystem>
#include <fstream>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/compare.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/weights/start_weights.h"
#include "run/host_fixture.h"
#include "support/file_leases.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/zero_weights.h"

namespace test_engine_resume {

using namespace accrue;
using namespace accrue_test;
using accrue::test::current_row;
using accrue::test::has_leases;
using accrue::test::Rows;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class TestEngineResume : public QObject {
  Q_OBJECT
  HostHome home_;
  fs::path fresh() { return home_.fresh(); }

  /// A run of six updates of which rank 0 was killed in the fourth; the newest checkpoint is that of the second.
  fs::path killed_run() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=5,die=0@14:9", dir, {.updates = 6, .checkpoint_every = 2});
    if (!host.ends("failed", 4)) qFatal("%s", host.story().c_str());
    return dir;
  }
  fs::path killed_run(const RunPlan& plan) {
    const auto dir = fresh();
    WatchedHost host("micro_ms=5,die=0@14:9");
    if (!host.start({plan, dir}) || !host.ends("failed", 4)) qFatal("%s", host.story().c_str());
    return dir;
  }

  fs::path csv() const { return home_.path() / "data.csv"; }
  void write_csv(int shift) const {
    std::ofstream out(csv());
    out << "x,y\n";
    for (int i = 0; i < 200; ++i) out << i << ',' << 2 * i + shift << '\n';
  }
  /// A plan whose data are the table that was written.
  RunPlan csv_plan() const {
    RunPlan plan = small_plan({.updates = 6, .checkpoint_every = 2});
    plan.spec.data.kind = DataKind::csv;
    plan.spec.data.path = csv().string();
    plan.base_dir = csv().parent_path();
    plan.data = scan_data(plan.spec, plan.base_dir).value();
    return plan;
  }

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void each_start_of_a_run_writes_its_plan_once() {
    // A file that is written again is another file.
    const auto file_of = [](const fs::path& dir) {
      struct stat facts {};
      return ::stat((dir / "plan.json").c_str(), &facts) == 0 ? facts.st_ino : 0;
    };
    const auto dir = fresh();
    WatchedHost host("micro_ms=5", dir, {.updates = 12});
    const auto begun = file_of(dir);
    QVERIFY(begun != 0);  // start() has written it
    VERIFY_STORY(host.wait_for<Update>());
    QCOMPARE(file_of(dir), begun);
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    host.forget();
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.wait_for<Update>());
    QVERIFY(file_of(dir) != begun);
    QVERIFY(read_run_order(dir / "plan.json")->first_seq.front() > 0);
    VERIFY_STORY(host.ends("finished", 0));
  }

  void restarts_after_a_lost_rank_and_finishes() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=5,die=1@14:9,once", dir, {.updates = 6, .checkpoint_every = 2, .max_restarts = 3});
    VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 6);
    VERIFY_STORY(host.wait_for<StateChanged>([](const StateChanged& changed) {
      return changed.detail.starts_with("Rank 1 was killed (signal 9)") &&
             changed.detail.ends_with(". Restarting from update 2 (attempt 1 of 3)");
    }));
    VERIFY_STORY(host.wait_for<RunStarted>(
        [](const RunStarted& started) { return started.resumed && started.resumed_update == 2; }));
    QVERIFY(read_events(dir / "events.jsonl")->problems == ReadProblems{});
  }

  void gives_up_after_two_restarts_without_progress() {
    WatchedHost host("micro_ms=2,die=1@6:9", fresh(), {.max_restarts = 10});
    VERIFY_STORY(host.ends("failed", 4));
    VERIFY_STORY(host.end->reason.find("2 restarts brought no new checkpoint") != std::string::npos);
    QCOMPARE(host.all_of<RunStarted>().size(), std::size_t{3});
  }

  void does_not_restart_what_would_fail_again() {
    WatchedHost host("micro_ms=2,fail=1@6:numerics", fresh(), {.max_restarts = 10});
    VERIFY_STORY(host.ends("failed", 3));
    QCOMPARE(host.all_of<RunStarted>().size(), std::size_t{1});
  }

  void resumes_a_killed_run_from_its_checkpoint_with_gapless_numbers() {
    const auto dir = killed_run();
    std::ofstream(dir / "events.jsonl", std::ios::app) << "{\"v\":1,\"kind\":\"torn";
    WatchedHost host("micro_ms=2");
    const auto resumed = host.resume(dir);
    QVERIFY2(resumed.has_value(), resumed ? "" : resumed.error().text().c_str());
    VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 6);
    const auto history = read_events(dir / "events.jsonl");
    QVERIFY(history->problems == ReadProblems{});
    std::int64_t last_time = 0;
    for (const auto& event : history->events) {
      if (event.rank != supervisor_rank) continue;
      QVERIFY(event.time_ns >= last_time);
      last_time = event.time_ns;
    }
    QCOMPARE(loss_curve(dir)->size(), std::size_t{6});
    QCOMPARE(read_run(dir)->state, std::string("finished"));
    // There is nothing left to do; and only run.stop_when ends a run early, whatever its record lacks.
    std::string kept;
    std::ifstream events(dir / "events.jsonl");
    for (std::string line; std::getline(events, line);)
      if (line.find("\"update\":6,") == std::string::npos) kept += line + '\n';
    std::ofstream(dir / "events.jsonl", std::ios::trunc) << kept;
    fs::remove(dir / "summary.json");
    QCOMPARE(read_run(dir)->updates, 5);
    const auto again = host.resume(dir);
    QVERIFY(!again && again.error().hint.ends_with("--set run.updates=..."));
  }

  void updates_that_nobody_wrote_down_are_named_at_resume() {
    const auto dir = killed_run();
    // As when the supervisor had died after update 1: the checkpoint of update 2 is there, its events are not.
    std::string kept;
    std::ifstream events(dir / "events.jsonl");
    for (std::string line; std::getline(events, line) && line.find("\"update\":2,") == std::string::npos;)
      kept += line + '\n';
    std::ofstream(dir / "events.jsonl", std::ios::trunc) << kept;
    fs::remove(dir / "summary.json");
    WatchedHost host("micro_ms=2");
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.ends("finished", 0));
    QCOMPARE(std::ranges::count_if(
                 host.all_of<Warning>(),
                 [](const Warning& warning) { return warning.message.starts_with("update 2 has no events"); }),
             std::ptrdiff_t{1});
  }

  void going_back_to_a_checkpoint_leaves_the_later_ones_aside() {
    const auto dir = fresh();
    const auto checkpoint = [&dir](const char* name) { return fs::exists(dir / "checkpoints" / name); };
    {
      WatchedHost host("micro_ms=1", dir, {.updates = 1000, .checkpoint_every = 2});
      VERIFY_STORY(host.wait_for<CheckpointDone>([](const CheckpointDone& done) { return done.update == 6; }));
      host.kill();
      VERIFY_STORY(host.ends("stopped", 130));
    }
    QVERIFY(checkpoint("step-4") && checkpoint("step-6"));
    // Lost again before the next checkpoint: what is newest must be of the branch that trained on.
    WatchedHost host("micro_ms=5,die=0@19:9");
    QVERIFY(!host.resume(dir / "checkpoints" / "step-5").has_value());
    QVERIFY(!host.resume(dir / "checkpoints" / "step-six").has_value());
    QVERIFY(host.resume(dir / "checkpoints" / "step-4").has_value());
    VERIFY_STORY(host.ends("failed", 4));
    QVERIFY(checkpoint("abandoned-step-6"));
    QVERIFY(!checkpoint("step-6"));
    QCOMPARE(read_run(dir)->last_checkpoint, std::string("step-4"));
  }

  void a_copied_run_answers_to_a_name_of_its_own() {
    const auto dir = fresh();
    const auto copy = fresh();
    WatchedHost host("micro_ms=5", dir, {.updates = 40, .checkpoint_every = 2});
    VERIFY_STORY(host.wait_for<CheckpointDone>());
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    fs::copy(dir, copy, fs::copy_options::recursive);
    WatchedHost other;
    host.forget();
    QVERIFY(host.resume(dir).has_value());
    QVERIFY(other.resume(copy).has_value());
    VERIFY_STORY(host.wait_for<Update>());
    QVERIFY2(other.wait_for<Update>(), other.story().c_str());
    QVERIFY(read_run(dir)->run_id != read_run(copy)->run_id);
    EngineHost commander(fake_options());
    QVERIFY(commander.attach(copy).has_value());
    commander.stop();
    QVERIFY2(other.ends("stopped", 130), other.story().c_str());
    VERIFY_STORY(host.ends("finished", 0));  // this one was not stopped
  }

  void resumes_a_stopped_run_by_the_same_host() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=5", dir, {.updates = 12, .checkpoint_every = 1});
    VERIFY_STORY(host.wait_for<Update>());
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    host.forget();
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 12);
  }

  void waits_for_orphans_that_are_still_saving() {
    const auto dir = killed_run();
    WatchedHost host("micro_ms=5");
    auto holder = RunWriter::reopen(dir);  // acts like the orphans: it holds what they inherited
    QVERIFY(holder.has_value());
    QVERIFY(host.resume(dir).has_value());
    const auto waiting = host.wait_for_state("starting");
    VERIFY_STORY(waiting && waiting->detail.find("saving") != std::string::npos);
    QVERIFY(!host.wait_for<RankReady>(200ms));
    holder = tl::unexpected(Error{});
    VERIFY_STORY(host.ends("finished", 0));
  }

  void replay_gives_the_same_events_and_the_same_end() {
    const auto dir = killed_run();
    WatchedHost host;
    QVERIFY(host.replay(dir).has_value());
    VERIFY_STORY(host.ends("failed", 4));
    QCOMPARE(host.state(), RunState::failed);
    QVERIFY(host.all() == read_events(dir / "events.jsonl")->events);
    QVERIFY(!host.replay("/nowhere").has_value());
  }

  void replay_of_an_interrupted_run_ends_as_failed() {
    const auto dir = fresh();
    {
      WatchedHost host("micro_ms=1", dir);
      VERIFY_STORY(host.ends("finished", 0));
    }
    fs::resize_file(dir / "events.jsonl", fs::file_size(dir / "events.jsonl") - 10);  // the end is torn off
    WatchedHost host;
    QVERIFY(host.replay(dir).has_value());
    VERIFY_STORY(host.wait_for_state("failed"));
    QCOMPARE(host.state(), RunState::failed);
  }

  void data_that_changed_is_refused_at_resume() {
    write_csv(0);
    const auto dir = killed_run(csv_plan());
    write_csv(1);
    WatchedHost host;
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.ends("failed", 2));
    VERIFY_STORY(host.end->reason.find("changed since the run began") != std::string::npos);
  }

  void other_weights_in_the_same_folder_are_refused_if_they_are_read_again_data() {
    const Rows<int, QString, QString> row;
    const char* const refused = "the weights that the run started from changed since it began";
    row("the same, from the start", 0, "", "");
    row("others, from the start", 0, "others", refused);
    row("none, from the start", 0, "none", "there is no such folder");
    row("others, from a checkpoint", 2, "others", "");
    row("none, from a checkpoint", 2, "none", "");
  }
  void other_weights_in_the_same_folder_are_refused_if_they_are_read_again() {
    const auto [checkpoint_every, now, refusal] = current_row<int, QString, QString>();
    const fs::path weights = home_.path() / "weights";
    const auto write = [&weights](const char* layers) {
      test::write_zero_weights(weights, std::string(R"({"model_type":"gpt2","n_embd":8,"n_head":2,"vocab_size":9,)") +
                                            R"("n_positions":4,"n_layer":)" + layers + "}");
    };
    write("1");
    RunPlan plan = small_plan({.updates = 6, .checkpoint_every = checkpoint_every});
    plan.spec.model.init = WeightInit::checkpoint;
    plan.spec.model.weights = weights;
    plan.weights_fingerprint = StartWeights::open(weights)->fingerprint().value();
    const fs::path dir = killed_run(plan);
    if (now == QStringLiteral("others")) write("2");
    if (now == QStringLiteral("none")) fs::remove_all(weights);
    WatchedHost host;
    QVERIFY(host.resume(dir).has_value());
    VERIFY_STORY(host.ends(refusal.isEmpty() ? "finished" : "failed", refusal.isEmpty() ? 0 : 2));
    VERIFY_STORY(host.end->reason.find(refusal.toStdString()) != std::string::npos);
    // A branch and a start in its folder compare what is there now with what is recorded.
    if (now != QStringLiteral("others")) return;
    plan.weights_fingerprint = StartWeights::open(weights)->fingerprint().value();
    RunOrder order{.plan = plan, .run_dir = dir};
    const auto begun = claim_run_folder(order);
    QVERIFY(!begun && begun.error().message.find("the weights that the run started from changed") != std::string::npos);
    if (checkpoint_every == 0) return;
    const auto point = read_branch_point(dir);
    QVERIFY(point.has_value());
    const auto branched = host.branch(*point, {plan, fresh()});
    QVERIFY(!branched && branched.error().message == begun.error().message);
  }

  void data_are_hashed_again_at_resume_only_if_they_may_have_changed() {
    write_csv(0);
    if (!has_leases(csv())) QSKIP("this file system does not say who has a file open");
    QTRY_VERIFY_WITH_TIMEOUT(!csv_plan().data.files.at(0).state.empty(), 30'000);
    RunPlan plan = csv_plan();
    plan.data.fingerprint = plan.data.files.at(0).fingerprint = "of the first part";
    const auto unchanged = killed_run(plan), written = killed_run(plan);
    WatchedHost host;
    QVERIFY(host.resume(unchanged).has_value());
    VERIFY_STORY(host.ends("finished", 0));
    write_csv(0);
    host.forget();
    QVERIFY(host.resume(written).has_value());
    VERIFY_STORY(host.ends("failed", 2));
    VERIFY_STORY(host.end->reason.find("changed since the run began") != std::string::npos);
  }

  void the_folder_of_a_run_cannot_be_used_twice() {
    const auto dir = killed_run();
    WatchedHost host;
    const auto again = host.start({small_plan(), dir});
    QVERIFY(!again.has_value());
    QCOMPARE(again.error().code, ErrorCode::config);
  }
};

ACCRUE_TEST_MAIN(TestEngineResume)

}  // namespace test_engine_resume
#include "test_engine_resume.moc"
