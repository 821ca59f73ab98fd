// SPDX-License-Identifier: Apache-2.0
// When the time of ranks that are to end is up, told by a clock that only the test moves.
#include <QTest>
#include <optional>
#include <vector>

#include "stop_ladder.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_stop_ladder {

using namespace accrue;
using namespace std::chrono_literals;
using accrue::test::current_row;
using accrue::test::Rows;
using Ending = StopLadder::Ending;

namespace {

constexpr int never = -1;

StopLadder::Clock::time_point at(int second) {
  return StopLadder::Clock::time_point(std::chrono::hours(1)) + std::chrono::seconds(second);
}

using Acts = void (*)(StopLadder&);

}  // namespace

class TestStopLadder : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ranks_are_killed_when_their_time_is_up_data() {
    const Rows<Acts, bool, int> row;  // what happened, whether the ranks are busy and answered, the second of the kill
    row(
        "nobody ended them", [](StopLadder&) {}, false, never);
    row(
        "nobody ended them, and the host closes", [](StopLadder& s) { s.close(at(0)); }, false, never);
    row(
        "a stop without an answer", [](StopLadder& s) { s.stop(at(0), true); }, false, 5);
    row(
        "a stop in a long micro-step", [](StopLadder& s) { s.stop(at(0), true); }, true, never);
    row(
        "a stop before all have joined", [](StopLadder& s) { s.stop(at(0), false); }, false, 0);
    row(
        "a stop in a long micro-step, and the host closes",
        [](StopLadder& s) {
          s.stop(at(0), true);
          s.close(at(2));
        },
        true, 5);
    row(
        "a save, however long it takes", [](StopLadder& s) { s.save(Ending::save, at(0)); }, false, never);
    row(
        "a last save on a full disk", [](StopLadder& s) { s.save(Ending::disk, at(0)); }, false, never);
    row(
        "a save in which a rank fell silent",
        [](StopLadder& s) {
          s.save(Ending::save, at(0));
          s.hurry(at(60));
        },
        false, 65);
    row(
        "a save, and the host closes",
        [](StopLadder& s) {
          s.save(Ending::save, at(0));
          s.close(at(20));
        },
        true, 25);
    row(
        "a save that becomes a stop",
        [](StopLadder& s) {
          s.save(Ending::save, at(0));
          s.stop(at(10), true);
        },
        false, 15);
    row(
        "killed ranks are killed again", [](StopLadder& s) { s.killed(at(0)); }, true, 5);
    row(
        "a stop, and this process stood still for half a minute",
        [](StopLadder& s) {
          s.stop(at(0), true);
          s.leave_out(30s);
        },
        false, 35);
    row(
        "a save, and this process stood still",
        [](StopLadder& s) {
          s.save(Ending::save, at(0));
          s.leave_out(30s);
        },
        false, never);
    row(
        "a stop of the attempt before",
        [](StopLadder& s) {
          s.stop(at(0), true);
          s.begin_attempt();
        },
        false, never);
  }
  void ranks_are_killed_when_their_time_is_up() {
    const auto [acts, busy, due] = current_row<Acts, bool, int>();
    StopLadder ladder(5s);
    acts(ladder);
    int second = 0;
    while (second < 3600 && !ladder.kill_is_due(at(second), busy)) ++second;
    QCOMPARE(second < 3600 ? second : never, due);
  }

  void an_attempt_ends_for_one_reason_data() {
    const Rows<Acts, Ending, bool> row;  // what happened, why the ranks end, whether another attempt may follow
    row(
        "a failure", [](StopLadder& s) { s.fail(); }, Ending::failure, true);
    row(
        "a failure after which the user wants no restart",
        [](StopLadder& s) {
          s.fail();
          s.refuse_restart();
        },
        Ending::last_failure, false);
    row(
        "a failure while the host closes",
        [](StopLadder& s) {
          s.fail();
          s.close(at(0));
        },
        Ending::failure, false);
    row(
        "a failure while the ranks stop",
        [](StopLadder& s) {
          s.stop(at(0), true);
          s.fail();
        },
        Ending::stop, false);
    row(
        "a failure while a full disk is left",
        [](StopLadder& s) {
          s.save(Ending::disk, at(0));
          s.fail();
        },
        Ending::disk, false);
    row(
        "no failure whose restart could be refused", [](StopLadder& s) { s.refuse_restart(); }, Ending::none, false);
    row(
        "a kill after all else",
        [](StopLadder& s) {
          s.fail();
          s.refuse_restart();
          s.kill();
        },
        Ending::kill, false);
  }
  void an_attempt_ends_for_one_reason() {
    const auto [acts, ending, restart] = current_row<Acts, Ending, bool>();
    StopLadder ladder(5s);
    acts(ladder);
    QVERIFY(ladder.ending() == ending);
    QCOMPARE(ladder.restart_allowed(), restart);
  }

  void a_word_about_the_wait_comes_every_two_graces_until_the_kill() {
    StopLadder ladder(5s);
    std::vector<int> words;
    for (int second = 0; second < 100; ++second) {
      if (second == 20) ladder.save(Ending::save, at(second));
      if (second == 43) ladder.stop(at(second), true);  // the wait began with the save
      if (second == 65) ladder.killed(at(second));
      if (ladder.word_is_due(at(second))) words.push_back(second);
    }
    QCOMPARE(words, (std::vector{30, 40, 50, 60}));
    QVERIFY(ladder.asked_at() == at(20));
  }
};

ACCRUE_TEST_MAIN(TestStopLadder)

}  // namespace test_stop_ladder
#include "test_stop_ladder.moc"
