// SPDX-License-Identifier: Apache-2.0
// Judgements of the supervisor: ranks that have stopped, make no progress, or never began.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <atomic>
#include <fstream>
#include <thread>

#include "control_channel.h"
#include "hold_agreement.h"
#include "progress_watch.h"
#include "rank_process.h"
#include "support/refusals.h"
#include "support/test_program.h"

namespace test_supervision {

using namespace accrue;
using namespace std::chrono_literals;

namespace {

const RankCommand hold{RankCommandKind::hold, 0};
const RankCommand proceed_command{RankCommandKind::proceed, 0};
RankCommand hold_after(std::int64_t m) {
  return {RankCommandKind::hold_after, m};
}
RankCommand stop_after(std::int64_t m) {
  return {RankCommandKind::stop_after, m};
}

}  // namespace

class TestSupervision : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_rank_that_is_stopped_before_it_runs_is_killed() {
    QTemporaryDir folder;
    const std::string gate = folder.filePath("gate").toStdString();
    QVERIFY(::mkfifo(gate.c_str(), 0600) == 0);
    Result<ChildProcess> started;
    std::atomic<pid_t> spawner{0};
    std::thread starts([&] {
      spawner = ::gettid();
      // Nobody opens its other end, so that is how far the child comes.
      started = start_process({.command = {"/bin/true"}, .files = {{0, -1, gate, O_RDONLY}}, .patience = 100ms});
    });
    const auto child = [&] {
      std::ifstream file("/proc/self/task/" + std::to_string(spawner) + "/children");
      pid_t found = 0;
      return file >> found ? found : 0;
    };
    QTRY_VERIFY(child() > 0);
    ::kill(child(), SIGSTOP);
    starts.join();
    QVERIFY(started.has_value());
    QCOMPARE(started->wait().signal, SIGKILL);
  }

  void ranks_stand_still_after_the_latest_micro_step() {
    HoldAgreement agreement(3);
    QVERIFY(agreement.begin(HoldAgreement::Goal::hold).broadcast == std::vector{hold});
    QVERIFY(agreement.answer(0, {6, false}).broadcast.empty());
    QVERIFY(agreement.answer(1, {8, false}).broadcast.empty());
    QVERIFY(agreement.answer(2, {7, false}).broadcast == std::vector{hold_after(8)});
    QVERIFY(!agreement.answer(1, {8, true}).reached);
    QVERIFY(!agreement.answer(0, {8, true}).reached);
    QVERIFY(agreement.answer(2, {8, true}).reached);
    QCOMPARE(agreement.micro_step(), 8);
    QVERIFY(agreement.release().broadcast == std::vector{proceed_command});
  }

  void ranks_that_cannot_pause_inside_a_window_stand_still_at_its_end() {
    HoldAgreement agreement(2, [](std::int64_t micro_step) { return (micro_step + 3) / 4 * 4; });
    agreement.begin(HoldAgreement::Goal::hold);
    agreement.answer(0, {1, false});
    QVERIFY(agreement.answer(1, {5, false}).broadcast == std::vector{hold_after(8)});
    agreement.answer(0, {8, true});
    QVERIFY(agreement.answer(1, {8, true}).reached);
  }

  void a_rank_that_already_stood_still_counts_where_it_stands() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    agreement.answer(0, {6, false});
    agreement.answer(0, {6, true});  // it stopped at once
    const auto move = agreement.answer(1, {6, false});
    QVERIFY(move.broadcast == std::vector{hold_after(6)});
    QVERIFY(!move.reached);
    QVERIFY(agreement.answer(1, {6, true}).reached);
  }

  void a_rank_that_stood_still_too_early_is_sent_on() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    agreement.answer(0, {6, false});
    agreement.answer(0, {6, true});
    QVERIFY(agreement.answer(1, {7, false}).broadcast == std::vector{hold_after(7)});
    QVERIFY(!agreement.answer(1, {7, true}).reached);
    QVERIFY(agreement.answer(0, {7, true}).reached);
  }

  void ranks_of_a_resumed_run_pause_before_their_first_micro_step() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    agreement.answer(0, {0, false});  // neither has read yet that it continues after micro-step 40
    QVERIFY(agreement.answer(1, {0, false}).broadcast == std::vector{hold_after(0)});
    QVERIFY(!agreement.answer(0, {40, true}).reached);
    QVERIFY(agreement.answer(1, {40, true}).reached);
    QCOMPARE(agreement.micro_step(), 40);
  }

  void stopping_ends_all_after_the_same_micro_step() {
    HoldAgreement agreement(2);
    QVERIFY(agreement.begin(HoldAgreement::Goal::stop).broadcast == std::vector{hold});
    agreement.answer(1, {3, false});
    QVERIFY(agreement.answer(0, {4, false}).broadcast == std::vector{stop_after(4)});
  }

  void a_stop_overtakes_a_pause_that_is_under_way() {
    HoldAgreement asking(2);
    asking.begin(HoldAgreement::Goal::hold);
    asking.answer(0, {4, false});
    QVERIFY(asking.begin(HoldAgreement::Goal::stop).broadcast.empty());
    QVERIFY(asking.answer(1, {4, false}).broadcast == std::vector{stop_after(4)});
  }

  void a_stop_out_of_a_pause_ends_at_once() {
    HoldAgreement agreement(1);
    agreement.begin(HoldAgreement::Goal::hold);
    agreement.answer(0, {9, false});
    QVERIFY(agreement.answer(0, {9, true}).reached);
    QVERIFY(agreement.begin(HoldAgreement::Goal::stop).broadcast == std::vector{stop_after(9)});
  }

  void a_step_moves_on_to_the_next_standstill() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, false});
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, true});
    QVERIFY(agreement.advance_to(3).broadcast == (std::vector{hold_after(3), proceed_command}));
    QVERIFY(!agreement.answer(0, {3, true}).reached);
    QVERIFY(agreement.answer(1, {3, true}).reached);
  }

  void a_step_by_a_phase_is_done_when_all_ranks_stand_after_it() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    QVERIFY(agreement.advance_phase().broadcast.empty());  // not held yet, so the place is unknown
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, false});
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, true});
    QVERIFY(agreement.phase() == StepPhase::none);
    QVERIFY(agreement.advance_phase().broadcast == (std::vector<RankCommand>{{RankCommandKind::step_phase, 0}}));
    QVERIFY(!agreement.answer(0, {3, true, StepPhase::forward}).reached);
    const auto move = agreement.answer(1, {3, true, StepPhase::forward});
    QVERIFY(move.reached && !move.unprompted);
    QCOMPARE(agreement.micro_step(), std::int64_t{3});
    QVERIFY(agreement.phase() == StepPhase::forward);
    // To the end of the same micro-step's backward.
    QVERIFY(agreement.advance_in(3).broadcast == (std::vector<RankCommand>{{RankCommandKind::hold_in, 3}}));
    QVERIFY(agreement.phase() == StepPhase::none);  // on the way
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {3, true, StepPhase::backward});
    QVERIFY(agreement.phase() == StepPhase::backward);
    QVERIFY(agreement.release().broadcast == std::vector{proceed_command});
  }

  /// Until all stand, some may be in micro-step 2 and others in 3.
  void a_stop_waits_for_a_step_by_a_phase_that_is_under_way() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, false});
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, true});
    agreement.advance_phase();
    QVERIFY(agreement.answer(0, {3, true, StepPhase::forward}).broadcast.empty());
    QVERIFY(agreement.begin(HoldAgreement::Goal::stop).broadcast.empty());
    QVERIFY(agreement.answer(1, {3, true, StepPhase::forward}).broadcast == std::vector{stop_after(3)});
  }

  void answers_to_a_step_by_a_phase_that_was_called_off_hold_nobody() {
    HoldAgreement agreement(2);
    agreement.begin(HoldAgreement::Goal::hold);
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, false});
    for (const std::size_t rank : {0, 1}) agreement.answer(rank, {2, true});
    agreement.advance_phase();
    agreement.release();
    for (const std::size_t rank : {0, 1}) QVERIFY(!agreement.answer(rank, {3, true, StepPhase::forward}).reached);
    QCOMPARE(agreement.stage(), HoldAgreement::Stage::open);
    // A pause for a value that is not finite is still one.
    QVERIFY(!agreement.answer(0, {3, true}).reached);
    QVERIFY(agreement.answer(1, {3, true}).unprompted);
  }

  void ranks_that_stop_of_their_own_accord_are_recognised() {
    HoldAgreement agreement(2);
    QVERIFY(!agreement.answer(0, {12, true}).reached);
    const auto move = agreement.answer(1, {12, true});
    QVERIFY(move.reached && move.unprompted);
    QVERIFY(agreement.release().broadcast == std::vector{proceed_command});
  }

  void the_silent_rank_is_blamed_not_the_one_that_waits_for_it() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(2, start);
    watch.heard(0, {"reduce", 3, 12, 4}, start);
    watch.heard(1, {"forward", 3, 12, 3}, start);
    for (int s = 1; s <= 20; ++s) watch.heard(0, {"reduce", 3, 12, 4}, start + std::chrono::seconds(s));
    QVERIFY(watch.stalled(start + 5s, 10s).empty());
    QVERIFY(watch.stalled(start + 20s, 10s) == std::vector<std::size_t>{1});
  }

  void among_ranks_that_talk_the_one_left_behind_is_blamed() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(3, start);
    for (int s = 0; s <= 20; ++s) {
      watch.heard(0, {"reduce", 3, 12, 4}, start + std::chrono::seconds(s));
      watch.heard(1, {"backward", 3, 11, 3}, start + std::chrono::seconds(s));
      watch.heard(2, {"reduce", 3, 12, 4}, start + std::chrono::seconds(s));
    }
    QVERIFY(watch.stalled(start + 20s, 10s) == std::vector<std::size_t>{1});
  }

  void a_slow_checkpoint_is_no_stall() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(1, start);
    for (int s = 0; s <= 90; ++s) watch.heard(0, {"checkpoint", 3, 12, 4}, start + std::chrono::seconds(s));
    QVERIFY(watch.stalled(start + 90s, 10s).empty());
  }

  void a_silent_rank_is_blamed_within_ten_seconds_whatever_the_stall_time_out() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(2, start);
    for (int s = 0; s <= 11; ++s) watch.heard(0, {"reduce", 3, 12, 4}, start + std::chrono::seconds(s));
    QVERIFY(watch.stalled(start + 9s, 30s).empty());
    QVERIFY(watch.stalled(start + 11s, 30s) == std::vector<std::size_t>{1});
  }

  void a_silent_rank_is_blamed_even_in_a_checkpoint() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(2, start);
    for (int s = 0; s <= 11; ++s) watch.heard(0, {"checkpoint", 3, 12, 4}, start + std::chrono::seconds(s));
    watch.heard(1, {"checkpoint", 3, 12, 4}, start);
    QVERIFY(watch.stalled(start + 11s, 30s) == std::vector<std::size_t>{1});
    QVERIFY(watch.writing(start + 11s, 10s) == (std::vector<std::size_t>{0, 1}));
  }

  void a_rank_that_is_stopped_is_told_from_a_tree_that_is() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(2, start);
    watch.heard(1, {"checkpoint", 3, 12, 4}, start);
    watch.heard(0, {"checkpoint", 3, 12, 4}, start + 5s);
    QVERIFY(!watch.stopped(start + 5s, 6s).has_value());
    QVERIFY(!watch.stopped(start + 20s, 6s).has_value());  // no rank is heard
    watch.heard(0, {"checkpoint", 3, 12, 4}, start + 20s);
    QVERIFY(watch.stopped(start + 20s, 6s) == std::optional<std::size_t>{1});
  }

  void who_gave_up_is_told_from_who_was_waited_for() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch silent(3, start);
    for (const std::size_t rank : {0, 1, 2}) silent.heard(rank, {"reduce", 3, 12, 4}, start);
    for (const std::size_t rank : {0, 2}) silent.heard(rank, {"reduce", 3, 12, 4}, start + 3s);
    silent.gone(0);
    QVERIFY(silent.awaited(start + 3s) == std::optional<std::size_t>{1});

    ProgressWatch stuck(3, start);  // it talks, but never came as far as the others
    stuck.heard(0, {"reduce", 3, 12, 4}, start + 3s);
    stuck.heard(1, {"data", 3, 12, 3}, start + 3s);
    stuck.heard(2, {"reduce", 3, 12, 4}, start + 3s);
    stuck.gone(0);
    QVERIFY(stuck.awaited(start + 3s) == std::optional<std::size_t>{1});

    ProgressWatch lost(2, start);  // the other waits as well, so it was not waited for
    for (const std::size_t rank : {0, 1}) lost.heard(rank, {"reduce", 3, 12, 4}, start + 3s);
    lost.gone(0);
    QVERIFY(!lost.awaited(start + 3s).has_value());
  }

  void time_in_which_nobody_looked_counts_for_nobody() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(2, start);
    watch.leave_out(60s, start + 61s);
    QVERIFY(watch.stalled(start + 69s, 10s).empty());
    QVERIFY(!watch.stalled(start + 72s, 10s).empty());
  }

  /// A supervisor on a slow disk looks up late every time: 1.2 s of every 1.3 s do not count.
  void a_rank_that_hangs_is_blamed_however_often_nobody_looked() {
    auto now = ProgressWatch::Clock::now();
    ProgressWatch watch(2, now);
    int turns = 0;
    for (; turns < 1000 && watch.stalled(now, 10s).empty(); ++turns) {
      now += 1300ms;
      watch.heard(0, {"reduce", 3, 12, 4}, now);
      watch.leave_out(1200ms, now);
    }
    QVERIFY2(turns > 95 && turns < 110, qPrintable(QString::number(turns)));  // 10 s at 0.1 s a turn
    QVERIFY(watch.stalled(now, 10s) == std::vector<std::size_t>{1});
  }

  void progress_clears_the_blame() {
    const auto start = ProgressWatch::Clock::now();
    ProgressWatch watch(1, start);
    QVERIFY(!watch.stalled(start + 20s, 10s).empty());
    watch.worked(0, start + 21s);
    QVERIFY(watch.stalled(start + 22s, 10s).empty());
  }

  void control_lines_read_back_as_written() {
    for (const auto command :
         {HostVerb::status, HostVerb::pause, HostVerb::proceed, HostVerb::step_micro_step, HostVerb::step_update,
          HostVerb::step_phase, HostVerb::stop, HostVerb::checkpoint, HostVerb::checkpoint_and_stop, HostVerb::kill}) {
      const auto read = decode_control(encode_control({command}));
      QVERIFY(read && read->verb == command);
    }
    const auto steps = decode_control(encode_control({HostVerb::set_steps, 8}));
    QVERIFY(steps && steps->verb == HostVerb::set_steps && steps->steps == 8);
    QVERIFY(!decode_control(R"({"v":1,"command":"set_steps"})").has_value());
    QVERIFY(!decode_control(R"({"v":1,"command":"shut_down"})").has_value());
    QVERIFY(!decode_control(R"({"v":1,"command":"sing"})").has_value());
    QVERIFY(!decode_control(R"({"v":7,"command":"stop"})").has_value());
    const auto answer = decode_answer(encode_answer({false, "paused", "no"}));
    QVERIFY(answer && !answer->ok && answer->state == "paused" && answer->error == "no");
  }

  void a_rank_gets_the_environment_it_needs_and_no_more() {
    qputenv("LD_PRELOAD_TEST_SECRET", "x");
    qputenv("RANK", "99");
    RankLaunch launch;
    launch.rank = 1;
    launch.world = 4;
    launch.threads = 2;
    const auto environment = rank_environment(launch);
    const auto has = [&environment](const char* entry) {
      return std::count(environment.begin(), environment.end(), std::string(entry)) == 1;
    };
    QVERIFY(has("RANK=1"));
    QVERIFY(has("WORLD_SIZE=4"));
    QVERIFY(has("LOCAL_RANK=1"));
    QVERIFY(has("OMP_NUM_THREADS=2"));
    QVERIFY(has("OMP_WAIT_POLICY=passive"));
    QVERIFY(has("GLOO_SOCKET_IFNAME=lo"));
    for (const auto& entry : environment) QVERIFY(entry.find("SECRET") == std::string::npos);
  }

  void a_missing_rank_program_is_named() {
    RankLaunch launch;
    launch.program = "/nowhere/accrue-rank";
    const auto process = spawn_rank(launch);
    VERIFY_FAILS(process, ErrorCode::device, "/nowhere/accrue-rank");
  }
};

ACCRUE_TEST_MAIN(TestSupervision)

}  // namespace test_supervision
#include "test_supervision.moc"
