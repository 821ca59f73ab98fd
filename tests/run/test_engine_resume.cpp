// SPDX-License-Identifier: Apache-2.0
// Runs that go on: restarted by the supervisor, resumed by a user, replayed, and refused where they must not go on.
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "accrue/run/compare.h"
#include "accrue/run/event_reader.h"
#include "accrue/run/run_store.h"
#include "run/host_fixture.h"

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

#define VERIFY_STORY(condition) QVERIFY2((condition), observer.story().c_str())

class TestEngineResume : public QObject {
  Q_OBJECT
  HostHome home_;
  fs::path fresh() { return home_.fresh(); }

 private Q_SLOTS:
  void initTestCase() { home_.take_over(); }

  /// After every test: no process, no zombie, no socket, no lock.
  void cleanup() {
    qunsetenv("ACCRUE_FAKE_RANK");
    QVERIFY(eventually([] { return child_count() == 0; }));
    QCOMPARE(home_.leftovers(), std::string());
  }

  void restarts_after_a_lost_rank_and_finishes() {
    const FakeScript script("micro_ms=5,die=1@14:9,once");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 6, .checkpoint_every = 2, .max_restarts = 3}), dir}).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished" && end->updates == 6);
    bool told = false;
    bool resumed = false;
    for (const auto& event : observer.all()) {
      if (const auto* changed = std::get_if<StateChanged>(&event.body))
        told = told || (changed->detail.starts_with("Rank 1 was killed (signal 9)") &&
                        changed->detail.ends_with(". Restarting from update 2 (attempt 1 of 3)"));
      if (const auto* started = std::get_if<RunStarted>(&event.body))
        resumed = resumed || (started->resumed && started->resumed_update == 2);
    }
    VERIFY_STORY(told && resumed);
    QVERIFY(read_events(dir / "events.jsonl")->problems == ReadProblems{});
  }

  void gives_up_after_two_restarts_without_progress() {
    const FakeScript script("micro_ms=2,die=1@6:9");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.max_restarts = 10}), fresh()}).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "failed" && end->exit_status == 4);
    VERIFY_STORY(end->reason.find("2 restarts brought no new checkpoint") != std::string::npos);
    int starts = 0;
    for (const auto& event : observer.all()) starts += std::holds_alternative<RunStarted>(event.body) ? 1 : 0;
    QCOMPARE(starts, 3);
  }

  void does_not_restart_what_would_fail_again() {
    const FakeScript script("micro_ms=2,fail=1@6:numerics");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.max_restarts = 10}), fresh()}).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "failed" && end->exit_status == 3);
    int starts = 0;
    for (const auto& event : observer.all()) starts += std::holds_alternative<RunStarted>(event.body) ? 1 : 0;
    QCOMPARE(starts, 1);
  }

  void resumes_a_killed_run_from_its_checkpoint_with_gapless_numbers() {
    const auto dir = fresh();
    {
      const FakeScript script("micro_ms=5,die=0@14:9");
      EngineHost host(fake_options());
      Observer observer(host);
      QVERIFY(host.start({small_plan({.updates = 6, .checkpoint_every = 2}), dir}).has_value());
      VERIFY_STORY(observer.wait_for_end());
      QCOMPARE(host.state(), RunState::failed);
    }
    std::ofstream(dir / "events.jsonl", std::ios::app) << "{\"v\":1,\"kind\":\"torn";
    const FakeScript script("micro_ms=2");
    EngineHost host(fake_options());
    Observer observer(host);
    const auto resumed = host.resume(dir);
    QVERIFY2(resumed.has_value(), resumed ? "" : resumed.error().text().c_str());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished" && end->updates == 6);
    const auto history = read_events(dir / "events.jsonl");
    QVERIFY(history->problems == ReadProblems{});
    std::int64_t last_time = 0;
    for (const auto& event : history->events) {
      if (event.rank != supervisor_rank) continue;
      QVERIFY(event.time_ns >= last_time);
      last_time = event.time_ns;
    }
    const auto curve = loss_curve(dir);
    QCOMPARE(curve->size(), std::size_t{6});
    QCOMPARE(read_run(dir)->state, std::string("finished"));
    QVERIFY(!host.resume(dir).has_value());  // there is nothing left to do
  }

  void updates_that_nobody_wrote_down_are_named_at_resume() {
    const auto dir = fresh();
    {
      const FakeScript script("micro_ms=5,die=0@14:9");
      EngineHost host(fake_options());
      Observer observer(host);
      QVERIFY(host.start({small_plan({.updates = 6, .checkpoint_every = 2}), dir}).has_value());
      VERIFY_STORY(observer.wait_for_end());
    }
    // As when the supervisor had died after update 1: the checkpoint of update 2 is there, its events are not.
    std::string kept;
    std::ifstream events(dir / "events.jsonl");
    for (std::string line; std::getline(events, line) && line.find("\"update\":2,") == std::string::npos;)
      kept += line + '\n';
    std::ofstream(dir / "events.jsonl", std::ios::trunc) << kept;
    std::filesystem::remove(dir / "summary.json");
    const FakeScript script("micro_ms=2");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.resume(dir).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished");
    int named = 0;
    for (const auto& event : observer.all())
      if (const auto* warning = std::get_if<Warning>(&event.body))
        named += warning->message.starts_with("update 2 has no events") ? 1 : 0;
    QCOMPARE(named, 1);
  }

  void going_back_to_a_checkpoint_leaves_the_later_ones_aside() {
    const auto dir = fresh();
    const auto checkpoint = [&dir](const char* name) { return fs::exists(dir / "checkpoints" / name); };
    {
      const FakeScript script("micro_ms=1");
      EngineHost host(fake_options());
      Observer observer(host);
      QVERIFY(host.start({small_plan({.updates = 1000, .checkpoint_every = 2}), dir}).has_value());
      VERIFY_STORY(observer.wait_for<Update>());
      const auto fourth = observer.wait([](const RunEvent& e) {
        const auto* done = std::get_if<CheckpointDone>(&e.body);
        return done != nullptr && done->update == 6;
      });
      VERIFY_STORY(fourth);
      host.kill();
      VERIFY_STORY(observer.wait_for_end());
    }
    QVERIFY(checkpoint("step-4") && checkpoint("step-6"));
    EngineHost host(fake_options());
    QVERIFY(!host.resume(dir / "checkpoints" / "step-5").has_value());
    QVERIFY(!host.resume(dir / "checkpoints" / "step-six").has_value());
    // Lost again before the next checkpoint: what is newest must be of the branch that trained on.
    const FakeScript script("micro_ms=5,die=0@19:9");
    Observer observer(host);
    QVERIFY(host.resume(dir / "checkpoints" / "step-4").has_value());
    VERIFY_STORY(observer.wait_for_end());
    QVERIFY(checkpoint("abandoned-step-6"));
    QVERIFY(!checkpoint("step-6"));
    QCOMPARE(read_run(dir)->last_checkpoint, std::string("step-4"));
  }

  void a_copied_run_answers_to_a_name_of_its_own() {
    const auto dir = fresh();
    const auto copy = fresh();
    const FakeScript script("micro_ms=5");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 40, .checkpoint_every = 2}), dir}).has_value());
    VERIFY_STORY(observer.wait_for<CheckpointDone>());
    host.stop();
    VERIFY_STORY(observer.wait_for_end());
    fs::copy(dir, copy, fs::copy_options::recursive);
    EngineHost other(fake_options());
    Observer others(other);
    observer.forget();
    QVERIFY(host.resume(dir).has_value());
    QVERIFY(other.resume(copy).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    QVERIFY2(others.wait_for<Update>().has_value(), others.story().c_str());
    QVERIFY(read_run(dir)->run_id != read_run(copy)->run_id);
    EngineHost commander(fake_options());
    QVERIFY(commander.attach(copy).has_value());
    commander.stop();
    QVERIFY2(others.wait_for_end().has_value(), others.story().c_str());
    VERIFY_STORY(observer.wait_for_end());
    QCOMPARE(host.state(), RunState::finished);  // nobody stopped this one
  }

  void resumes_a_stopped_run_by_the_same_host() {
    const FakeScript script("micro_ms=5");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 12, .checkpoint_every = 1}), dir}).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    host.stop();
    VERIFY_STORY(observer.wait_for_end());
    observer.forget();
    QVERIFY(host.resume(dir).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished" && end->updates == 12);
  }

  void waits_for_orphans_that_are_still_saving() {
    const FakeScript script("micro_ms=5");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 12, .checkpoint_every = 1}), dir}).has_value());
    VERIFY_STORY(observer.wait_for<CheckpointDone>());
    host.stop();
    VERIFY_STORY(observer.wait_for_end());
    observer.forget();
    auto holder = RunWriter::reopen(dir);  // stands for the orphans: it holds what they inherited
    QVERIFY(holder.has_value());
    QVERIFY(host.resume(dir).has_value());
    const auto waiting = observer.wait_for_state("starting");
    VERIFY_STORY(waiting && waiting->detail.find("saving") != std::string::npos);
    QVERIFY(!observer.wait_for<RankReady>(200ms));
    holder = tl::unexpected(Error{});
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished");
  }

  void replay_gives_the_same_events_and_the_same_end() {
    const FakeScript script("micro_ms=1,die=1@10:9");
    const auto dir = fresh();
    {
      EngineHost host(fake_options());
      Observer observer(host);
      QVERIFY(host.start({small_plan({}), dir}).has_value());
      VERIFY_STORY(observer.wait_for_end());
    }
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.replay(dir).has_value());
    VERIFY_STORY(observer.wait_for_end());
    QCOMPARE(host.state(), RunState::failed);
    QVERIFY(observer.all() == read_events(dir / "events.jsonl")->events);
    QVERIFY(!host.replay("/nowhere").has_value());
  }

  void replay_of_an_interrupted_run_ends_as_failed() {
    const FakeScript script("micro_ms=1");
    const auto dir = fresh();
    {
      EngineHost host(fake_options());
      Observer observer(host);
      QVERIFY(host.start({small_plan({}), dir}).has_value());
      VERIFY_STORY(observer.wait_for_end());
    }
    fs::resize_file(dir / "events.jsonl", fs::file_size(dir / "events.jsonl") - 10);  // the end is torn off
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.replay(dir).has_value());
    const auto failed = observer.wait([](const RunEvent& e) {
      const auto* changed = std::get_if<StateChanged>(&e.body);
      return changed != nullptr && changed->state == "failed";
    });
    VERIFY_STORY(failed);
    QCOMPARE(host.state(), RunState::failed);
  }

  void data_that_changed_is_refused_at_resume() {
    const FakeScript script("micro_ms=5,die=0@14:9");
    const auto dir = fresh();
    const auto csv = home_.path() / "data.csv";
    const auto write_csv = [&csv](int shift) {
      std::ofstream out(csv);
      out << "x,y\n";
      for (int i = 0; i < 200; ++i) out << i << ',' << 2 * i + shift << '\n';
    };
    write_csv(0);
    RunPlan plan = small_plan({.updates = 6});
    plan.spec.data.kind = DataKind::csv;
    plan.spec.data.path = csv.string();
    const auto facts = scan_data(plan.spec, csv.parent_path());
    QVERIFY2(facts.has_value(), facts ? "" : facts.error().text().c_str());
    plan.data = *facts;
    plan.base_dir = csv.parent_path();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({plan, dir}).has_value());
    VERIFY_STORY(observer.wait_for_end());
    write_csv(1);
    observer.forget();
    QVERIFY(host.resume(dir).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "failed" && end->exit_status == 2);
    VERIFY_STORY(end->reason.find("changed since the run began") != std::string::npos);
  }

  void the_folder_of_a_run_cannot_be_used_twice() {
    const FakeScript script("micro_ms=1");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({}), dir}).has_value());
    VERIFY_STORY(observer.wait_for_end());
    const auto again = host.start({small_plan({}), dir});
    QVERIFY(!again.has_value());
    QCOMPARE(again.error().code, ErrorCode::config);
  }
};

QTEST_GUILESS_MAIN(TestEngineResume)
#include "test_engine_resume.moc"
