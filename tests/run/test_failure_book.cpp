// SPDX-License-Identifier: Apache-2.0
// The failure of a run that counts, and the number of restarts, by a clock that only the test advances.
#include <signal.h>

#include <QTest>
#include <string>

#include "failure_book.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_failure_book {

using namespace accrue;
using namespace std::chrono_literals;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

FailureBook::Clock::time_point at(std::chrono::milliseconds time) {
  return FailureBook::Clock::time_point(std::chrono::hours(1)) + time;
}

/// An attempt that lost a rank, after as many checkpoints.
void lose_a_rank(FailureBook& book, int checkpoints = 0) {
  book.begin_attempt();
  for (int i = 0; i < checkpoints; ++i) book.checkpoint_committed();
  book.note(ErrorCode::peer_lost, "Rank 1 was killed (signal 9)");
}

}  // namespace

class TestFailureBook : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_first_failure_of_an_attempt_is_the_runs() {
    FailureBook book;
    book.note(ErrorCode::disk, "no space");
    book.note(ErrorCode::peer_lost, "rank 1 is gone");
    QVERIFY(book.failure()->code == ErrorCode::disk);
    QCOMPARE(book.failure()->message, std::string("no space"));
    book.begin_attempt();
    QVERIFY(!book.failure());
  }

  void an_exit_that_a_lost_peer_explains_is_held_back_data() {
    const Rows<int, ExitReport, bool> row;  // the class of the failure, how the process ended
    row("a rank that lost its peer", int(ErrorCode::peer_lost), {0, 4}, true);
    row("one that gave up waiting", int(ErrorCode::hang), {0, 4}, true);
    row("one that met nobody", int(ErrorCode::rendezvous), {0, 4}, true);
    row("one that was killed", int(ErrorCode::peer_lost), {SIGKILL, 0}, false);
    row("one whose connection ended", int(ErrorCode::peer_lost), {0, 4, true}, false);
    row("one whose disk is full", int(ErrorCode::disk), {0, 5}, false);
    row("one with a bug", int(ErrorCode::internal), {0, 1}, false);
  }
  void an_exit_that_a_lost_peer_explains_is_held_back() {
    const auto [code, exit, held] = current_row<int, ExitReport, bool>();
    FailureBook book;
    QCOMPARE(book.hold_back(1, exit, static_cast<ErrorCode>(code), at(0ms)), held);
    QCOMPARE(book.settling_is_due(at(1h)), held);
    QCOMPARE(book.take_held_back().size(), std::size_t(held));
    QVERIFY(!book.settling_is_due(at(1h)));
  }

  void the_first_exit_that_is_held_back_sets_the_time_in_which_its_cause_may_turn_up() {
    FailureBook book;
    book.hold_back(1, {0, 4}, ErrorCode::peer_lost, at(0ms));
    book.hold_back(2, {0, 4}, ErrorCode::peer_lost, at(300ms));
    QVERIFY(!book.settling_is_due(at(399ms)));
    QVERIFY(book.settling_is_due(at(400ms)));
    book.leave_out(5s);  // the cause could not have arrived in the meantime
    QVERIFY(!book.settling_is_due(at(5399ms)));
    QVERIFY(book.settling_is_due(at(5400ms)));
  }

  void only_a_lost_rank_is_worth_another_attempt_data() {
    const Rows<int, bool> row;
    for (const auto code : {ErrorCode::peer_lost, ErrorCode::hang}) row(to_string(code), int(code), true);
    for (const auto code : {ErrorCode::config, ErrorCode::data, ErrorCode::numerics, ErrorCode::disk, ErrorCode::device,
                            ErrorCode::protocol, ErrorCode::rendezvous, ErrorCode::internal})
      row(to_string(code), int(code), false);
  }
  void only_a_lost_rank_is_worth_another_attempt() {
    const auto [code, again] = current_row<int, bool>();
    FailureBook book;
    QVERIFY(!book.may_restart(1, at(0ms)));  // nothing has failed
    book.note(static_cast<ErrorCode>(code), "failed");
    QCOMPARE(book.may_restart(1, at(0ms)), again);
    QVERIFY(!book.may_restart(0, at(0ms)));
  }

  void restarts_count_for_ten_minutes() {
    FailureBook book;
    for (const auto time : {0min, 4min}) {
      lose_a_rank(book, 1);
      QVERIFY(book.may_restart(2, at(time)));
      book.restarted(at(time));
    }
    lose_a_rank(book, 1);
    QVERIFY(!book.may_restart(2, at(9min)));
    QCOMPARE(book.no_restart_text(2, at(9min)),
             std::string(". Not restarted again: 2 restarts in ten minutes, as launch.max_restarts allows"));
    QVERIFY(book.may_restart(2, at(10min)));  // the first one is forgotten
    QCOMPARE(book.recent_restarts(at(10min)), 1);
    QCOMPARE(book.restarts(), 2);
  }

  void two_attempts_without_a_new_checkpoint_are_enough() {
    FailureBook book;
    lose_a_rank(book);
    book.restarted(at(0ms));
    lose_a_rank(book);
    QVERIFY(book.may_restart(100, at(1s)));
    book.restarted(at(1s));
    lose_a_rank(book, 1);  // this one brought a checkpoint, and the count begins anew
    QVERIFY(book.may_restart(100, at(2s)));
    book.restarted(at(2s));
    lose_a_rank(book);
    QVERIFY(book.may_restart(100, at(3s)));
    book.restarted(at(3s));
    lose_a_rank(book);
    QVERIFY(!book.may_restart(100, at(4s)));
    QCOMPARE(book.no_restart_text(100, at(4s)),
             std::string(". Not restarted again: 2 restarts brought no new checkpoint"));
  }

  void a_run_that_never_restarted_says_nothing_of_restarts() {
    FailureBook book;
    lose_a_rank(book);
    QCOMPARE(book.no_restart_text(0, at(0ms)), std::string());
  }

  void an_end_is_told_in_words_data() {
    const Rows<ExitReport, int, std::string> row;
    row("exit", {0, 3}, int(ErrorCode::numerics), "Rank 2 ended with exit status 3");
    row("unknown exit", {0, 77}, int(ErrorCode::internal), "Rank 2 ended with exit status 77");
    row("kill", {SIGKILL, 0}, int(ErrorCode::peer_lost), "Rank 2 was killed (signal 9)");
    row("crash", {SIGSEGV, 0}, int(ErrorCode::peer_lost), "Rank 2 died of signal 11 (Segmentation fault)");
    row("lost", {0, 4, true}, int(ErrorCode::peer_lost), "Rank 2 was lost: its connection ended");
  }
  void an_end_is_told_in_words() {
    const auto [exit, code, words] = current_row<ExitReport, int, std::string>();
    QCOMPARE(int(code_of_exit(exit)), code);
    QCOMPARE(cause_text("Rank 2", exit), words);
  }
};

ACCRUE_TEST_MAIN(TestFailureBook)

}  // namespace test_failure_book
#include "test_failure_book.moc"
