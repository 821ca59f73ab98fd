// SPDX-License-Identifier: Apache-2.0
// Influences on a run from outside: a slow disk, the signals of a log-out, a user who tidies up its folder.
#include <signal.h>

#include <QTest>
#include <filesystem>
#include <fstream>

#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "folder_watch.h"
#include "run/host_fixture.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_engine_outside {

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class TestEngineOutside : public QObject {
  Q_OBJECT
  HostHome home_;

 private Q_SLOTS:
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void a_checkpoint_on_a_slow_disk_is_no_hang_and_a_stop_waits_for_it() {
    WatchedHost host("micro_ms=5,save_ms=3000", home_.fresh(), {.updates = 1000, .stall_timeout_s = 1.0});
    VERIFY_STORY(host.wait_for<Update>());
    host.checkpoint_and_stop();
    const auto slow = host.wait_for<Warning>();
    VERIFY_STORY(slow && slow->class_name == "slow" && slow->message.starts_with("Writing the checkpoint has taken"));
    VERIFY_STORY(host.ends("stopped", 130));
    VERIFY_STORY(host.wait_for<CheckpointDone>(0ms));
    VERIFY_STORY(!host.warned_of_a_hang());
  }

  void a_final_model_on_a_slow_disk_is_waited_for() {
    WatchedHost host("micro_ms=1,finish_ms=3000", home_.fresh(), {.stall_timeout_s = 1.0});
    VERIFY_STORY(host.ends("finished", 0));
    VERIFY_STORY(!host.warned_of_a_hang());
  }

  void signals_that_reach_the_ranks_do_not_end_them() {
    WatchedHost host("micro_ms=10", home_.fresh(), {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    for (const auto& [rank, pid] : host.rank_pids())
      for (const int number : {SIGTERM, SIGHUP, SIGINT}) ::kill(pid, number);
    host.checkpoint_and_stop();
    VERIFY_STORY(host.ends("stopped", 130));
    VERIFY_STORY(host.wait_for<CheckpointDone>(0ms));
  }

  void what_is_removed_is_seen_at_the_next_look_and_the_looks_are_less_than_a_second_apart() {
    static_assert(FolderWatch::interval < 1s);
    for (const char* name : {"run.lock", "events.jsonl", ""}) {
      const auto dir = home_.fresh();
      fs::create_directories(dir);
      for (const char* file : {"run.lock", "events.jsonl"}) std::ofstream(dir / file) << "x";
      const FolderWatch watch(dir);
      QVERIFY(!watch.look());
      fs::rename(dir / name, home_.fresh());
      const auto loss = watch.look();
      QVERIFY2(loss && loss->error.code == ErrorCode::disk, name);
      QCOMPARE(loss->folder_remains, *name != 0);
    }
  }

  void a_loss_is_reported_once_and_looked_for_once_an_interval() {
    const auto dir = home_.fresh();
    fs::create_directories(dir);
    for (const char* file : {"run.lock", "events.jsonl"}) std::ofstream(dir / file) << "x";
    FolderWatch watch(dir);
    const FolderWatch::Clock::time_point start(1h);
    QVERIFY(!watch.look_if_due(start));
    fs::remove(dir / "run.lock");
    QVERIFY(!watch.look_if_due(start + FolderWatch::interval - 1ms));
    QVERIFY(!watch.lost());
    QVERIFY(watch.look_if_due(start + FolderWatch::interval));
    QVERIFY(watch.lost());
    QVERIFY(!watch.look_if_due(start + 1h));
    QVERIFY(!watch.look_once());
  }

  void a_disk_that_fails_ends_the_run_once_and_an_end_that_is_not_recorded_is_kept() {
    const auto error = [](const char* message) { return Error{ErrorCode::disk, message, {}, {}}; };
    FolderWatch watch;
    QVERIFY(watch.disk_failed(error("first")));
    QVERIFY(!watch.disk_failed(error("second")));
    QVERIFY(watch.disk_has_failed() && !watch.end_error());
    watch.begin_end();
    QVERIFY(!watch.end_error());
    QVERIFY(!watch.disk_failed(error("third")));
    QVERIFY(!watch.disk_failed(error("fourth")));
    QCOMPARE(watch.end_error()->message, std::string("third"));
  }

  void what_is_removed_from_the_folder_of_a_live_run_ends_it_saved_and_with_a_word_data() {
    const test::Rows<QString, bool> row;
    for (const char* name : {"run.lock", "events.jsonl"}) row(name, name, true);
    row("the folder itself", "", false);
  }
  void what_is_removed_from_the_folder_of_a_live_run_ends_it_saved_and_with_a_word() {
    const auto [name, saves] = test::current_row<QString, bool>();
    const auto dir = home_.fresh();
    WatchedHost host("micro_ms=10", dir, {.updates = 1000});
    VERIFY_STORY(host.wait_for<Update>());
    if (name.isEmpty())
      fs::rename(dir, dir.string() + ".moved");
    else
      fs::remove(dir / name.toStdString());
    const auto warning = host.wait_for<Warning>();
    VERIFY_STORY(warning && warning->class_name == "disk" && warning->message.find("removed") != std::string::npos);
    VERIFY_STORY(host.ends("failed", 5));
    QCOMPARE(fs::exists(dir), saves);  // nothing is created in place of the folder
    if (saves) QVERIFY(checkpoint_mark(read_run(dir)->last_checkpoint).valid());
  }

  /// Nobody is there to end it: the run ends because of the record, and its last checkpoint never returns.
  void a_last_checkpoint_that_never_returns_is_ended() {
    const auto dir = home_.fresh();
    WatchedHost host("micro_ms=10,save_ms=600000", dir, {.updates = 1000, .stall_timeout_s = 0.3});
    VERIFY_STORY(host.wait_for<Update>());
    fs::remove(dir / "events.jsonl");
    VERIFY_STORY(host.ends("failed", 5, 60s));
    const auto run = read_run(dir);
    QVERIFY(!run || !checkpoint_mark(run->last_checkpoint).valid());
  }
};

ACCRUE_TEST_MAIN(TestEngineOutside)

}  // namespace test_engine_outside
#include "test_engine_outside.moc"
