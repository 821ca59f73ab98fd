// SPDX-License-Identifier: Apache-2.0
// The supervisor with real processes: ranks that speak the protocol, train nothing, and die, hang or flood on cue.
#include <signal.h>

#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <fstream>
#include <regex>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "run/host_fixture.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_engine_host {

using namespace accrue;
using namespace accrue_test;
using accrue::test::current_row;
using accrue::test::Rows;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class TestEngineHost : public QObject {
  Q_OBJECT
  HostHome home_;
  fs::path fresh() { return home_.fresh(); }

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void a_run_goes_from_start_to_finish_and_is_all_in_the_folder() {
    const auto dir = fresh();
    {
      WatchedHost host("micro_ms=1");
      const auto started = host.start({small_plan(), dir});
      QVERIFY2(started.has_value(), started ? "" : started.error().text().c_str());
      QCOMPARE(*started, dir);
      QVERIFY(!host.start({small_plan(), fresh()}).has_value());  // one at a time
      VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 5);
      QCOMPARE(host.state(), RunState::finished);
      QVERIFY(!is_locked(dir));
      QCOMPARE(read_run(dir)->state, std::string("finished"));
      // The queue saw what the file holds, in the same order, and control traffic besides.
      std::vector<RunEvent> stored;
      for (const auto& event : host.all())
        if (is_stored(event.body)) stored.push_back(*decode_event(encode_event(event)));
      const auto history = read_events(dir / "events.jsonl");
      QVERIFY(history->problems == ReadProblems{});
      QVERIFY(history->events == stored);
    }
    const auto run = read_run(dir);
    QCOMPARE(run->updates, 5);
    QCOMPARE(run->planned_updates, 5);
    QCOMPARE(run->weights_sha256.size(), std::size_t{64});
    // Fine enough to put runs of one second in their order.
    QVERIFY2(std::regex_match(run->started_at, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")),
             run->started_at.c_str());
    for (const char* rank : {"0.log", "1.log"}) {
      std::ifstream log(dir / "ranks" / rank);
      std::string line;
      QVERIFY(std::getline(log, line) && line.find("of 2 joined") != std::string::npos);
    }
  }

  void pauses_at_micro_step_2_of_4_steps_and_continues() {
    WatchedHost host("micro_ms=40", fresh(), {.updates = 6});
    VERIFY_STORY(host.wait_for<Update>());
    host.pause();
    auto paused = host.wait_for_state("paused");
    VERIFY_STORY(paused);
    const auto steps_to = [&](StepUnit unit, std::int64_t micro_step) {
      host.forget();
      host.step(unit);
      paused = host.wait_for_state("paused");
      return paused && paused->micro_step == micro_step;
    };
    // The place of a pause depends on time, so stepping leads to micro-step 2 of 4 in the third window.
    while (paused->micro_step < 10) VERIFY_STORY(steps_to(StepUnit::micro_step, paused->micro_step + 1));
    QCOMPARE(paused->micro_step, 10);
    QCOMPARE(paused->detail, std::string("Paused after backward of micro 2 of 4, update 3"));
    QCOMPARE(host.state(), RunState::paused);
    host.forget();
    QVERIFY(!host.wait_for<MicroSteps>(300ms).has_value());  // no rank moves

    VERIFY_STORY(steps_to(StepUnit::micro_step, 11));
    QCOMPARE(paused->detail, std::string("Paused after backward of micro 3 of 4, update 3"));
    VERIFY_STORY(steps_to(StepUnit::update, 12) && paused->update == 3);
    VERIFY_STORY(steps_to(StepUnit::update, 16));
    host.proceed();
    VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 6);
  }

  void a_pause_stores_only_whole_events_and_all_ranks_at_the_same_place() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=7", dir, {.ranks = 4, .updates = 40});
    for (int round = 0; round < 4; ++round) {
      VERIFY_STORY(host.wait_for<Update>());
      host.pause();
      const auto paused = host.wait_for_state("paused");
      VERIFY_STORY(paused);
      std::map<std::int64_t, std::int64_t> last;
      const auto history = read_events(dir / "events.jsonl");
      for (const auto& event : history->events)
        if (const auto* micro = std::get_if<MicroSteps>(&event.body)) last[event.rank] = micro->micro_step.back();
      QCOMPARE(last.size(), std::size_t{4});
      for (const auto& [rank, micro_step] : last) QCOMPARE(micro_step, paused->micro_step);
      host.forget();
      host.proceed();
      VERIFY_STORY(host.wait_for_state("running"));
    }
  }

  void stops_after_the_micro_step_and_drops_the_window() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=20", dir, {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    QElapsedTimer timer;
    timer.start();
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    QVERIFY2(timer.elapsed() < 1500, "a stop answers within a micro-step");
    QCOMPARE(host.state(), RunState::finished);
    QCOMPARE(read_run(dir)->state, std::string("stopped"));
    VERIFY_STORY(!host.wait_for<RankFailed>(0ms));
  }
  void stops_out_of_a_pause() {
    WatchedHost host("micro_ms=10", fresh(), {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    host.pause();
    VERIFY_STORY(host.wait_for_state("paused"));
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
  }
  void checkpoint_and_stop_ends_at_a_boundary_with_a_checkpoint() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=10", dir, {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    host.pause();  // out of a pause, too
    VERIFY_STORY(host.wait_for_state("paused"));
    host.checkpoint_and_stop();
    VERIFY_STORY(host.ends("stopped", 130));
    const auto run = read_run(dir);
    QCOMPARE(run->last_checkpoint, "step-" + std::to_string(run->updates));
  }
  void an_update_means_that_all_have_joined_even_if_one_has_not_said_so() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=10,late=1:700", dir, {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    VERIFY_STORY(host.all_of<RankReady>().size() == 1);
    VERIFY_STORY(host.wait_for_state("running", 0ms));
    host.pause();
    VERIFY_STORY(host.wait_for_state("paused"));
    host.proceed();
    host.checkpoint_and_stop();
    VERIFY_STORY(host.ends("stopped", 130));
    QCOMPARE(read_run(dir)->last_checkpoint, "step-" + std::to_string(host.end->updates));
  }
  void a_stop_before_all_have_said_that_they_joined_kills_no_rank_that_trains() {
    const auto dir = fresh();
    for (const bool saves : {false, true}) {
      WatchedHost host("micro_ms=10,late=1:700", dir / (saves ? "saves" : "stops"), {.updates = 1000});
      VERIFY_STORY(host.wait_for<Update>());
      saves ? host.checkpoint_and_stop() : host.stop();
      VERIFY_STORY(host.ends("stopped", 130));
      QCOMPARE(host.all_of<RankReady>().size(), std::size_t{2});  // a killed rank would not have got to it
      QCOMPARE(host.all_of<CheckpointDone>().size(), std::size_t{saves});
    }
  }
  void a_stop_says_what_it_still_waits_for() {
    EngineHostOptions options = fake_options();
    options.stop_grace = 400ms;
    WatchedHost host("micro_ms=10,save_ms=2500", options);
    QVERIFY(host.start({small_plan({.updates = 1000}), fresh()}).has_value());
    VERIFY_STORY(host.wait_for<Update>());
    host.checkpoint_and_stop();
    VERIFY_STORY(host.ends("stopped", 130));
    const std::string words = "Still writing the checkpoint of update " + std::to_string(host.end->updates) + ", ";
    const auto said = std::ranges::count_if(
        host.all_of<StateChanged>(), [&](const StateChanged& changed) { return changed.detail.starts_with(words); });
    VERIFY_STORY(said >= 1 && said <= 3);  // every 800 ms of 2.5 s
  }

  void a_checkpoint_on_request_does_not_end_the_run() {
    WatchedHost host("micro_ms=5", fresh(), {.updates = 30});
    VERIFY_STORY(host.wait_for<Update>());
    host.checkpoint();
    VERIFY_STORY(host.wait_for<CheckpointDone>());
    VERIFY_STORY(host.ends("finished", 0) && host.end->updates == 30);
  }

  void n_changes_at_a_boundary_and_a_resumed_run_repeats_it() {
    const auto dir = fresh();
    std::optional<StepsChanged> changed;
    {
      WatchedHost host("micro_ms=5", dir, {.updates = 1000, .checkpoint_every = 2});
      VERIFY_STORY(host.wait_for<CheckpointDone>());
      host.set_steps(2);
      changed = host.wait_for<StepsChanged>();
      VERIFY_STORY(changed && changed->steps == 2);
      QCOMPARE(changed->micro_step, 4 * changed->update);
      const auto later = host.wait_for_update(changed->update + 3);
      VERIFY_STORY(later && later->micro_step == changed->micro_step + 6);
      host.pause();  // the current window decides the place that is reported
      const auto paused = host.wait_for_state("paused");
      VERIFY_STORY(paused && paused->detail.find("of 2, update") != std::string::npos);
      host.forget();
      host.step(StepUnit::update);
      const auto stepped = host.wait_for_state("paused");
      VERIFY_STORY(stepped && (stepped->micro_step - changed->micro_step) % 2 == 0);
      for (const auto& [steps, why] :
           {std::pair{0, "N must be from 1 to 1048576, and "}, std::pair{2, "N is 2 already"}}) {
        host.set_steps(steps);
        const auto refused = host.wait_for_warning(why);
        VERIFY_STORY(refused && refused->class_name == refusal_class);
      }
    }
    // Back before the change, on the same branch: it comes again at the same update.
    std::map<std::int64_t, fs::path> checkpoints;
    for (const auto& entry : fs::directory_iterator(dir / "checkpoints"))
      if (const auto mark = checkpoint_mark(entry.path().filename().string()); mark.valid())
        checkpoints[mark.update] = entry.path();
    QVERIFY(checkpoints.begin()->first < changed->update);
    for (auto later = std::next(checkpoints.begin()); later != checkpoints.end(); ++later)
      fs::remove_all(later->second);
    WatchedHost host("micro_ms=5");
    QVERIFY(host.resume(dir).has_value());
    const auto again = host.wait_for<StepsChanged>();
    VERIFY_STORY(again && again->update == changed->update && again->steps == 2 && again->repeated);
  }
  void going_back_to_a_named_checkpoint_gives_up_the_n_set_after_it() {
    const auto dir = fresh();
    {
      WatchedHost host("micro_ms=5", dir, {.updates = 1000, .checkpoint_every = 1});
      VERIFY_STORY(host.wait_for<CheckpointDone>());
      host.set_steps(2);
      VERIFY_STORY(host.wait_for<StepsChanged>());
      host.stop();
      VERIFY_STORY(host.ends("stopped", 130));
    }
    WatchedHost host("micro_ms=5");
    QVERIFY(host.resume(dir / "checkpoints" / "step-1").has_value());
    const auto update = host.wait_for_update(6);
    VERIFY_STORY(update && update->micro_step == 24);
  }
  void a_request_that_a_failure_overtook_is_told_to_the_ranks_that_follow() {
    WatchedHost host("micro_ms=30,die=1@3:9,once=1", fresh(), {.steps = 8, .updates = 4, .max_restarts = 1});
    VERIFY_STORY(host.wait_for<MicroSteps>());
    host.set_steps(2);
    VERIFY_STORY(host.wait_for_state("restarting"));
    const auto changed = host.wait_for<StepsChanged>();
    VERIFY_STORY(changed && changed->steps == 2 && changed->update == 1);
  }
  void an_n_that_fills_no_window_is_refused() {
    WatchedHost host("micro_ms=10");
    RunPlan plan = small_plan({.updates = 1000});
    plan.spec.accumulation.knobs.tail = EpochTail::drop_stop;
    plan.knobs.tail = plan.window.knobs.tail = EpochTail::drop_stop;
    const std::int64_t batches = plan.window.batches_per_epoch;
    QVERIFY(batches > 0 && batches < 100'000);
    QVERIFY(host.start({plan, fresh()}).has_value());
    VERIFY_STORY(host.wait_for<Update>());
    host.set_steps(batches + 1);
    const auto refused = host.wait_for_warning("fills no window");
    VERIFY_STORY(refused && refused->class_name == refusal_class);
  }
  void a_dialect_with_one_n_refuses_another() {
    WatchedHost host("micro_ms=10");
    RunPlan plan = small_plan({.updates = 1000});
    plan.spec.accumulation.dialect = Dialect::llm;
    QVERIFY(host.start({plan, fresh()}).has_value());
    VERIFY_STORY(host.wait_for<Update>());
    host.set_steps(2);
    VERIFY_STORY(host.wait_for_warning("the dialect llm has one N"));
    VERIFY_STORY(!host.wait_for<StepsChanged>(0ms));
  }

  void kill_ends_at_once_whatever_the_ranks_do() {
    WatchedHost host("micro_ms=10,deaf=0,stall=1@9", fresh(), {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    QElapsedTimer timer;
    timer.start();
    host.kill();
    VERIFY_STORY(host.ends("stopped", 130));
    QVERIFY(timer.elapsed() < 1000);
  }
  void a_stop_that_nobody_answers_climbs_the_ladder() {
    WatchedHost host("micro_ms=10,deaf=1,stall=1@9", fresh(), {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    QElapsedTimer timer;
    timer.start();
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    QVERIFY(timer.elapsed() >= 1500 && timer.elapsed() < 6000);  // grace, kill
  }
  void destroying_the_host_leaves_no_process() {
    std::map<std::int64_t, pid_t> pids;
    {
      WatchedHost host("micro_ms=10,deaf=1", fresh(), {.updates = 1000});
      VERIFY_STORY(host.wait_for<Update>());
      pids = host.rank_pids();
    }
    QCOMPARE(pids.size(), std::size_t{2});
    for (const auto& [rank, pid] : pids) QVERIFY(!process_exists(pid));
  }
  void destroying_the_host_before_the_ranks_have_met_leaves_no_process() { WatchedHost("absent=1", fresh()); }

  void a_killed_rank_is_noticed_named_and_its_peers_are_ended() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=10,hang_on_loss=0", dir, {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    const auto pids = host.rank_pids();
    QElapsedTimer timer;
    timer.start();
    ::kill(pids.at(1), SIGKILL);
    const auto failed = host.wait([](const RunEvent& e) { return std::holds_alternative<RankFailed>(e.body); }, 3s);
    VERIFY_STORY(failed);
    QVERIFY2(timer.elapsed() <= 1000, qPrintable(QString::number(timer.elapsed())));
    QVERIFY(eventually([&] { return !process_exists(pids.at(0)); }));
    QVERIFY2(timer.elapsed() <= 2000, qPrintable(QString::number(timer.elapsed())));
    const auto& body = std::get<RankFailed>(failed->body);
    QCOMPARE(failed->rank, 1);
    QCOMPARE(body.signal, SIGKILL);
    QCOMPARE(body.class_name, std::string("peer_lost"));
    QVERIFY(!body.phase.empty());
    QVERIFY(body.log_tail.find("joined") != std::string::npos);
    QVERIFY(body.message.find("Rank 1 was killed (signal 9)") != std::string::npos);
    VERIFY_STORY(host.ends("failed", 4));
    QCOMPARE(host.state(), RunState::failed);
    QVERIFY(read_events(dir / "events.jsonl")->problems == ReadProblems{});
    QVERIFY(read_run(dir)->message.find("Rank 1 was killed") != std::string::npos);
  }
  void a_rank_that_only_lost_its_peer_is_not_blamed() {
    WatchedHost host("micro_ms=5,fail=1@6:data", fresh());
    VERIFY_STORY(host.ends("failed", 2));
    QCOMPARE(host.all_of<RankFailed>().size(), std::size_t{1});
    const auto failed = host.wait([](const RunEvent& e) { return std::holds_alternative<RankFailed>(e.body); });
    QCOMPARE(failed->rank, 1);
    QCOMPARE(std::get<RankFailed>(failed->body).class_name, std::string("data"));
    QCOMPARE(std::get<RankFailed>(failed->body).exit_status, 2);
  }
  /// If ranks hold parts of one model, a rank's number alone says little about its death or its own report.
  void a_rank_of_a_divided_model_is_named_with_its_place_data() {
    const Rows<QByteArray, QByteArray> row;
    row("killed", "micro_ms=5,die=3@6:9", "Rank 3 (data 0, stage 1, tensor 1) was killed (signal 9), last seen in ");
    row("exits", "micro_ms=5,exit=2@6:7", "Rank 2 (data 0, stage 1, tensor 0) ended with exit status 7, last seen in ");
    row("reports a failure", "micro_ms=5,fail=1@6:data", "Rank 1 (data 0, stage 0, tensor 1), last seen in ");
  }
  void a_rank_of_a_divided_model_is_named_with_its_place() {
    const auto [script, begin] = current_row<QByteArray, QByteArray>();
    RunPlan plan = small_plan({.ranks = 4});
    plan.grid = {.data = 1, .pipeline = 2, .tensor = 2};
    WatchedHost host(script);
    QVERIFY(host.start({plan, fresh()}).has_value());
    const auto failed = host.wait_for<RankFailed>();
    VERIFY_STORY(failed && failed->message.starts_with(begin.toStdString()));
  }
  void a_signal_is_named() {
    WatchedHost host("micro_ms=5,die=0@6:11", fresh());
    const auto failed = host.wait_for<RankFailed>();
    VERIFY_STORY(failed && failed->signal == SIGSEGV);
  }
  void a_rank_that_dies_before_it_joins_is_a_failure_with_its_log() {
    WatchedHost host("nonsense", fresh());
    const auto failed = host.wait_for<RankFailed>();
    VERIFY_STORY(failed && failed->exit_status == 2);
    VERIFY_STORY(failed->log_tail.find("unknown entry") != std::string::npos);
    VERIFY_STORY(host.ends("failed", 2));
  }

  void what_no_run_comes_out_of_ends_with_its_reason_data() {
    const Rows<QByteArray, int, QByteArray> row;
    row("ranks that never meet", "absent=1", 4, "joined within 1 s");
    row("a rank of another version", "version=1", 5, "version 99");
    row("non-finite values that nobody watches", "micro_ms=5,nan=6", 3, "");
  }
  void what_no_run_comes_out_of_ends_with_its_reason() {
    const auto [script, status, reason] = current_row<QByteArray, int, QByteArray>();
    WatchedHost host(script.constData(), fresh(), {.join_timeout_s = 1.0});
    VERIFY_STORY(host.ends("failed", status));
    VERIFY_STORY(host.end->reason.find(reason.constData()) != std::string::npos);
    if (script != "absent=1") return;
    const auto told = host.wait_for<Warning>(0ms);
    VERIFY_STORY(told && told->what_to_do == "If the machine is slow, raise launch.join_timeout_s");  // there is no log
  }

  void a_rank_program_that_is_missing_fails_with_its_path() {
    EngineHostOptions options;
    options.rank_program = "/nowhere/accrue-rank";
    WatchedHost host(options);
    QVERIFY(host.start({small_plan(), fresh()}).has_value());
    VERIFY_STORY(host.ends("failed", 2));
    VERIFY_STORY(host.end->reason.find("/nowhere/accrue-rank") != std::string::npos);
  }

  void a_stopped_process_makes_the_run_degraded_and_naming_it_and_comes_back() {
    WatchedHost host("micro_ms=10", fresh(), {.updates = 1000, .stall_timeout_s = 1.0});
    VERIFY_STORY(host.wait_for<Update>());
    const auto pids = host.rank_pids();
    ::kill(pids.at(1), SIGSTOP);
    const auto degraded = host.wait_for_state("degraded");
    const auto warning = host.wait_for<Warning>();
    host.forget();
    ::kill(pids.at(1), SIGCONT);
    VERIFY_STORY(degraded && degraded->detail.starts_with("Rank 1 made no progress"));
    VERIFY_STORY(warning && warning->class_name == "hang");
    VERIFY_STORY(host.wait_for_state("running"));
  }
  void a_rank_that_is_stuck_but_talks_is_told_from_one_that_waits() {
    WatchedHost host("micro_ms=10,stall=0@7", fresh(), {.updates = 1000, .stall_timeout_s = 1.0});
    const auto degraded = host.wait_for_state("degraded");
    VERIFY_STORY(degraded && degraded->detail.starts_with("Rank 0 made no progress"));
    VERIFY_STORY(degraded->detail.find("in forward") != std::string::npos);
  }

  void a_flood_of_output_neither_stops_nor_fills() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=1,flood=1@3:100000000", dir);
    VERIFY_STORY(host.ends("finished", 0, 30s));
    QVERIFY(fs::file_size(dir / "ranks" / "1.log") < (65U << 20));
  }

  void twenty_thousand_events_a_second_are_stored_and_shown_without_loss() {
    const auto dir = fresh();
    constexpr std::size_t updates = 10000;
    WatchedHost host("rate=20000", dir, {.ranks = 1, .updates = updates});
    VERIFY_STORY(host.ends("finished", 0, 60s));
    QCOMPARE(host.all_of<MicroSteps>().size(), 4 * updates);
    QCOMPARE(host.events().dropped(), std::uint64_t{0});
    const auto history = read_events(dir / "events.jsonl");
    QCOMPARE(std::ranges::count_if(history->events,
                                   [](const auto& e) { return std::holds_alternative<MicroSteps>(e.body); }),
             std::ptrdiff_t{4 * updates});
    QVERIFY(history->problems == ReadProblems{});
  }

  void gaps_and_damaged_lines_of_a_rank_are_warned_about() {
    const auto dir = fresh();
    WatchedHost host("micro_ms=1,garble=0@3,gap=1@5:7", dir);
    VERIFY_STORY(host.ends("finished", 0));
    const auto warned = [&](const char* class_name, const char* words) {
      return host.wait_for<Warning>([&](const Warning& warning) {
        return warning.class_name == class_name && warning.message.starts_with(words);
      });
    };
    VERIFY_STORY(warned("events", "Rank 1 skipped 7 events"));
    VERIFY_STORY(warned("protocol", "Rank 0"));
    QCOMPARE(read_events(dir / "events.jsonl")->problems.missing_events, 7);
  }

  void a_stop_right_after_a_step_by_a_phase_ends_the_run() {
    WatchedHost host("micro_ms=5");
    QVERIFY(host.start({small_plan(), fresh(), true}).has_value());
    VERIFY_STORY(host.wait_for_state("paused"));
    host.step(StepUnit::phase);  // into the first micro-step, which not all ranks begin at once
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
  }

  void non_finite_values_pause_an_interactive_run_at_the_boundary() {
    auto options = fake_options();
    options.interactive = true;
    WatchedHost host("micro_ms=5,nan=6", options);
    QVERIFY(host.start({small_plan(), fresh()}).has_value());
    const auto paused = host.wait_for_state("paused");
    VERIFY_STORY(paused && paused->micro_step == 8);
    VERIFY_STORY(paused->detail.find("The loss is NaN") != std::string::npos);
    host.proceed();
    VERIFY_STORY(host.ends("finished", 0));
  }

  void a_second_host_follows_and_commands_the_first() {
    const auto dir = fresh();
    WatchedHost first("micro_ms=10", dir, {.updates = 1000});
    QVERIFY(first.wait_for<Update>());
    {
      WatchedHost host;
      QVERIFY(host.attach(dir).has_value());
      QVERIFY(host.attached());
      VERIFY_STORY(host.wait_for<Update>());
      host.pause();
      VERIFY_STORY(host.wait_for_state("paused"));
      QVERIFY(first.wait_for_state("paused"));
      host.pause();  // refused, and said so
      VERIFY_STORY(host.wait_for_warning("refused"));
    }
    QCOMPARE(first.state(), RunState::paused);  // leaving changes nothing
    WatchedHost host;
    QVERIFY(host.attach(dir).has_value());
    QVERIFY(!host.resume(dir).has_value());
    host.stop();
    VERIFY_STORY(host.ends("stopped", 130));
    QVERIFY(first.ends("stopped", 130));
    QVERIFY(eventually([&] { return is_over(host.state()); }));
    // The viewer saw every stored event.
    std::vector<RunEvent> seen;
    for (const auto& event : host.all())
      if (event.seq >= 0) seen.push_back(event);
    QVERIFY(seen == read_events(dir / "events.jsonl")->events);
    QVERIFY(!host.attach(dir).has_value());
  }
};

ACCRUE_TEST_MAIN(TestEngineHost)

}  // namespace test_engine_host
#include "test_engine_host.moc"
