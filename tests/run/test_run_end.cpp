// SPDX-License-Identifier: Apache-2.0
// With which outcome a run ends, and what is said of it.
#include <QTest>
#include <string>

#include "run_end.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_run_end {

using namespace accrue;
using accrue::test::current_row;
using accrue::test::Rows;
using Ending = StopLadder::Ending;

namespace {

const FailureBook::Failure lost_rank{ErrorCode::peer_lost, "Rank 1 was killed"};
const FailureBook::Failure full_disk{ErrorCode::disk, "the disk is full"};
const RunFinished finished{.outcome = "finished"};
const RunFinished stopped{.outcome = "stopped", .reason = "a signal"};

}  // namespace

class TestRunEnd : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_ended_the_last_attempt_decides_the_outcome_data() {
    const Rows<LastAttempt, std::string> row;
    row("trained to its end", {.reported = finished}, "finished 0 ");
    row("trained to its end while a stop was on its way", {.ending = Ending::stop, .reported = finished},
        "finished 0 ");
    row("trained to its end, but the disk lost lines", {.failure = full_disk, .reported = finished}, "finished 0 ");
    row("trained to its end in a folder that is gone",
        {.failure = full_disk, .reported = finished, .folder_lost = true}, "failed 5 the disk is full");
    row("a lost rank", {.ending = Ending::failure, .failure = lost_rank}, "failed 4 Rank 1 was killed");
    row("a lost rank, and no restart is left",
        {.ending = Ending::failure, .failure = lost_rank, .no_restart = ". Not restarted again"},
        "failed 4 Rank 1 was killed. Not restarted again");
    row("a lost rank, and the user wants no restart", {.ending = Ending::last_failure, .failure = lost_rank},
        "stopped 130 Stopped by you");
    row("a lost rank while the others stop", {.ending = Ending::stop, .failure = lost_rank},
        "failed 4 Rank 1 was killed");
    row("a full disk", {.ending = Ending::disk, .failure = full_disk, .reported = stopped},
        "failed 5 the disk is full");
    row("a full disk, then a kill", {.ending = Ending::kill, .failure = full_disk}, "stopped 130 Killed by you");
    row("a stop", {.ending = Ending::stop, .reported = stopped}, "stopped 130 Stopped by you");
    row("a stop with a checkpoint", {.ending = Ending::save, .reported = stopped}, "stopped 130 Stopped by you");
    row("a signal of another launcher", {.reported = stopped, .launched_here = false},
        "stopped 130 Stopped by a signal");
    row("ranks that stopped by themselves", {.reported = stopped}, "stopped 130 a signal");
    row("nothing is known", {}, "failed 3 The ranks ended without saying how");
  }
  void what_ended_the_last_attempt_decides_the_outcome() {
    const auto [attempt, expected] = current_row<LastAttempt, std::string>();
    const RunOutcome outcome = outcome_of(attempt);
    QCOMPARE(outcome.outcome + " " + std::to_string(outcome.exit_status) + " " + outcome.reason, expected);
  }

  void an_end_says_where_a_resumed_run_begins_data() {
    const Rows<RunFinished, bool, std::int64_t, std::string> row;  // resumable, update of the newest checkpoint
    const RunFinished at_12{.outcome = "stopped", .updates = 12, .reason = "Stopped by you"};
    const RunFinished failed_at_12{.outcome = "failed", .updates = 12, .reason = "Rank 1 was killed"};
    row("finished", {.outcome = "finished", .updates = 2, .loss = 0.25}, true, 2, "Finished 2 updates, loss 0.25");
    row("finished early",
        {.outcome = "finished", .updates = 2, .loss = 0.25, .reason = "Finished after update 2 of 9: why"}, true, 2,
        "Finished after update 2 of 9: why");
    row("nothing to train", {.outcome = "finished"}, true, 0, "Finished without an update");
    row("behind", at_12, true, 10,
        "Stopped by you after 12 updates; resuming begins at update 10, the newest checkpoint");
    row("where it ended", at_12, true, 12, "Stopped by you after 12 updates");
    row("no checkpoint", at_12, true, 0,
        "Stopped by you after 12 updates; no checkpoint was taken, so resuming starts over");
    row("failed", failed_at_12, true, 10,
        "Failed: Rank 1 was killed; resuming begins at update 10, the newest checkpoint");
    row("would fail again", failed_at_12, false, 10, "Failed: Rank 1 was killed");
  }
  void an_end_says_where_a_resumed_run_begins() {
    const auto [end, resumable, newest, text] = current_row<RunFinished, bool, std::int64_t, std::string>();
    const CheckpointMark mark = newest == 0 ? CheckpointMark() : CheckpointMark{.update = newest};
    QCOMPARE(ended_text(end, Update(), resumable, mark), text);
  }
};

ACCRUE_TEST_MAIN(TestRunEnd)

}  // namespace test_run_end
#include "test_run_end.moc"
