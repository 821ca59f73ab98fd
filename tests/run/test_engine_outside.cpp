// SPDX-License-Identifier: Apache-2.0
// What a run meets from outside: a slow disk, the signals of a log-out, somebody who tidies up its folder.
#include <signal.h>

#include <QtTest>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/run_store.h"
#include "run/host_fixture.h"

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

#define VERIFY_STORY(condition) QVERIFY2((condition), observer.story().c_str())

namespace {

bool is_hang(const RunEvent& event) {
  const auto* warning = std::get_if<Warning>(&event.body);
  return warning != nullptr && warning->class_name == "hang";
}

/// By name, as a reader of the folder sees it.
CheckpointMark newest_checkpoint(const fs::path& dir) {
  const auto run = read_run(dir);
  return run ? checkpoint_mark(run->last_checkpoint) : CheckpointMark{};
}

}  // namespace

class TestEngineOutside : public QObject {
  Q_OBJECT
  HostHome home_;
  fs::path fresh() { return home_.fresh(); }

 private Q_SLOTS:
  void initTestCase() { home_.take_over(); }

  /// After every test: no process, no zombie, no socket, no lock.
  void cleanup() {
    QVERIFY(eventually([] { return child_count() == 0; }));
    QCOMPARE(home_.leftovers(), std::string());
  }

  void a_checkpoint_on_a_slow_disk_is_no_hang_and_a_stop_waits_for_it() {
    const FakeScript script("micro_ms=5,save_ms=3000");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 1000, .stall_timeout_s = 1.0}), fresh()}).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    host.checkpoint_and_stop();
    const auto slow = observer.wait_for<Warning>();
    VERIFY_STORY(slow && slow->class_name == "slow" && slow->message.starts_with("Writing the checkpoint has taken"));
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "stopped" && end->exit_status == 130);
    VERIFY_STORY(observer.wait_for<CheckpointDone>(0ms));
    VERIFY_STORY(!observer.wait(is_hang, 0ms));
  }

  void a_final_model_on_a_slow_disk_is_waited_for() {
    const FakeScript script("micro_ms=1,finish_ms=3000");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.stall_timeout_s = 1.0}), fresh()}).has_value());
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "finished" && end->exit_status == 0);
    VERIFY_STORY(!observer.wait(is_hang, 0ms));
  }

  void signals_that_reach_the_ranks_do_not_end_them() {
    const FakeScript script("micro_ms=10");
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 1000}), fresh()}).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    for (const auto& [rank, pid] : rank_pids(observer))
      for (const int number : {SIGTERM, SIGHUP, SIGINT}) ::kill(pid, number);
    host.checkpoint_and_stop();
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "stopped");
    VERIFY_STORY(observer.wait_for<CheckpointDone>(0ms));
  }

  void what_is_removed_from_the_folder_of_a_live_run_ends_it_saved_and_with_a_word_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<bool>("saves");
    for (const char* name : {"run.lock", "events.jsonl"}) QTest::newRow(name) << QString::fromLatin1(name) << true;
    QTest::newRow("the folder itself") << QString() << false;
  }
  void what_is_removed_from_the_folder_of_a_live_run_ends_it_saved_and_with_a_word() {
    QFETCH(QString, name);
    QFETCH(bool, saves);
    const FakeScript script("micro_ms=10");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 1000}), dir}).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    if (name.isEmpty())
      fs::rename(dir, dir.string() + ".moved");
    else
      fs::remove(dir / name.toStdString());
    const auto warning = observer.wait_for<Warning>();
    VERIFY_STORY(warning && warning->class_name == "disk" && warning->message.find("removed") != std::string::npos);
    const auto end = observer.wait_for_end();
    VERIFY_STORY(end && end->outcome == "failed" && end->exit_status == 5);
    QCOMPARE(fs::exists(dir), saves);  // nothing is made anew where the folder was
    if (saves) QVERIFY(newest_checkpoint(dir).valid());
  }

  /// Nobody is there to end it: the run ends because of the record, and its last checkpoint never returns.
  void a_last_checkpoint_that_never_returns_is_ended() {
    const FakeScript script("micro_ms=10,save_ms=600000");
    const auto dir = fresh();
    EngineHost host(fake_options());
    Observer observer(host);
    QVERIFY(host.start({small_plan({.updates = 1000, .stall_timeout_s = 0.3}), dir}).has_value());
    VERIFY_STORY(observer.wait_for<Update>());
    fs::remove(dir / "events.jsonl");
    const auto end = observer.wait_for_end(60s);
    VERIFY_STORY(end && end->outcome == "failed" && end->exit_status == 5);
    QVERIFY(!newest_checkpoint(dir).valid());
  }
};

QTEST_GUILESS_MAIN(TestEngineOutside)
#include "test_engine_outside.moc"
