// SPDX-License-Identifier: GPL-3.0-or-later
// The window is closed while a pair trains in it, or what is left of one.
#include <signal.h>

#include <cstdint>

#include "accrue/run/events/host_command.h"
#include "live/close_guard.h"
#include "live/detached_run.h"
#include "pair_studio.h"
#include "support/test_program.h"

namespace test_closing_pair {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Longer than any of these tests waits.
constexpr std::int64_t endless = 100'000;

RunSummary recorded(const QString& folder) {
  return read_run(folder.toStdString()).value_or(RunSummary{});
}

/// A process trains it beyond this update.
bool trainsBeyond(const QString& folder, std::int64_t update) {
  const RunSummary run = recorded(folder);
  return run.state == "running" && run.updates > update;
}

/// Of a run that trains without the window.
void stopElsewhere(const QString& folder) {
  const auto asked = ask_run(folder.toStdString(), {HostVerb::checkpoint_and_stop});
  QVERIFY2(asked, asked ? "" : asked.error().text().c_str());
  QTRY_VERIFY_WITH_TIMEOUT(processesWith(folder).isEmpty(), patience_ms);
  QCOMPARE(recorded(folder).state, std::string("stopped"));
}

void signalRanks(const RunSeries& run, int number) {
  const QList<pid_t> ranks = processesWith(run.folder());
  QCOMPARE(ranks.size(), 1);
  ::kill(ranks.first(), number);
}

class ClosingStudio : public PairStudio {
 public:
  ClosingStudio() : PairStudio(2, endless), alone(control->run()->folder()) { trainPair(); }
  void failPartner() {
    signalRanks(*control->run(), SIGKILL);
    QTRY_VERIFY_WITH_TIMEOUT(!control->isLive(), patience_ms);
  }
  /// The window stays open for now.
  void close(CloseAnswer answer) {
    dialogs.close_answer = {.answer = answer};
    QVERIFY(!window->close());
  }
  void closes() const { QTRY_VERIFY_WITH_TIMEOUT(!window->isVisible(), patience_ms); }
  QList<RunSeries*> both() const { return {companion->run(), control->run()}; }

  QString alone;  ///< folder of the run that had ended before the pair
};

}  // namespace

class TestClosingPair : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void stopping_saves_both_and_both_can_be_resumed() {
    ClosingStudio studio;
    studio.close(CloseAnswer::checkpointAndStop);
    QCOMPARE(studio.dialogs.close_questions, 1);
    studio.closes();
    for (const RunSeries* run : studio.both()) {
      QVERIFY(!run->isLive());
      QCOMPARE(run->outcome().outcome, QStringLiteral("stopped"));
      QCOMPARE(run->outcome().reason, QStringLiteral("Stopped by you"));
      QCOMPARE(run->checkpointUpdate(), run->outcome().updates);
    }
    StudioFixture later(studio.home, "micro_ms=2");
    later.show();
    for (const RunSeries* run : studio.both()) {
      later.control->resume(run->folder());
      QTRY_VERIFY_WITH_TIMEOUT(later.control->isLive() && later.control->run()->folder() == run->folder() &&
                                   later.control->run()->last().update > run->outcome().updates,
                               patience_ms);
      later.endRun();
    }
  }

  void both_go_on_without_the_window_data() {
    QTest::addColumn<bool>("held");
    QTest::newRow("training") << false;
    QTest::newRow("held") << true;
  }
  void both_go_on_without_the_window() {
    QFETCH(const bool, held);
    ClosingStudio studio;
    if (held) {
      studio.control->togglePause();
      QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
      QTRY_COMPARE_WITH_TIMEOUT(studio.companion->run()->state(), RunState::paused, patience_ms);
    }
    studio.close(CloseAnswer::keepRunning);
    QCOMPARE(studio.dialogs.close_questions, 1);
    studio.closes();
    for (const RunSeries* run : studio.both()) {
      QCOMPARE(run->outcome().outcome, QStringLiteral("stopped"));
      QTRY_VERIFY_WITH_TIMEOUT(trainsBeyond(run->folder(), run->outcome().updates), patience_ms);
    }
    for (const RunSeries* run : studio.both()) stopElsewhere(run->folder());
  }

  void one_goes_on_when_its_partner_has_failed() {
    ClosingStudio studio;
    studio.failPartner();
    QVERIFY(studio.companion->isLive());
    studio.close(CloseAnswer::keepRunning);
    studio.closes();
    const RunSeries* left = studio.companion->run();
    QTRY_VERIFY_WITH_TIMEOUT(trainsBeyond(left->folder(), left->outcome().updates), patience_ms);
    QCOMPARE(recorded(studio.control->run()->folder()).state, std::string("failed"));
    stopElsewhere(left->folder());
  }

  void one_goes_on_when_its_partner_fails_while_it_is_saved_and_the_window_shows_that() {
    ClosingStudio studio;
    signalRanks(*studio.control->run(), SIGSTOP);
    studio.close(CloseAnswer::keepRunning);
    const RunSeries* left = studio.companion->run();
    QTRY_VERIFY_WITH_TIMEOUT(!left->isLive(), patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(trainsBeyond(left->folder(), left->outcome().updates), patience_ms);
    QVERIFY(studio.window->isVisible());
    studio.failPartner();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->closeGuard()->isWaiting(), patience_ms);
    QVERIFY(studio.window->isVisible());
    QTRY_VERIFY2_WITH_TIMEOUT(studio.message().contains(QStringLiteral("Rank 0 was killed")),
                              qPrintable(studio.message()), patience_ms);
    QVERIFY(studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 1);
    stopElsewhere(left->folder());
  }

  void a_run_from_elsewhere_beside_it_is_left_alone() {
    ClosingStudio studio;
    studio.failPartner();
    const std::int64_t ended_at = recorded(studio.alone).updates;
    QVERIFY(resumeDetached(studio.control->bridgeOptions(), studio.alone));
    QTRY_VERIFY_WITH_TIMEOUT(trainsBeyond(studio.alone, ended_at), patience_ms);
    studio.control->attach(studio.alone);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->attached() && studio.control->state() == RunState::running, patience_ms);
    studio.close(CloseAnswer::stopNow);
    studio.closes();
    QVERIFY(processesWith(studio.companion->run()->folder()).isEmpty());
    const std::int64_t closed_at = recorded(studio.alone).updates;
    QTRY_VERIFY_WITH_TIMEOUT(trainsBeyond(studio.alone, closed_at), patience_ms);
    stopElsewhere(studio.alone);
  }

  void a_pair_that_was_stopped_before_is_not_kept_running() {
    ClosingStudio studio;
    studio.control->stop();
    studio.close(CloseAnswer::keepRunning);
    studio.closes();
    for (const RunSeries* run : studio.both()) {
      QVERIFY(processesWith(run->folder()).isEmpty());
      QCOMPARE(recorded(run->folder()).state, std::string("stopped"));
    }
  }

  void a_first_that_was_killed_because_its_second_could_not_begin_is_not_kept_running() {
    PairStudio studio(2, endless);
    QVERIFY(studio.companion->start(*studio.preflight->result().plan));
    RunSeries* const first = studio.companion->run();
    QTRY_VERIFY_WITH_TIMEOUT(first->last().update >= 1, patience_ms);
    studio.companion->kill();
    studio.dialogs.close_answer = {.answer = CloseAnswer::keepRunning};
    QVERIFY(!studio.window->close());
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
    QVERIFY(processesWith(first->folder()).isEmpty());
    QCOMPARE(recorded(first->folder()).state, std::string("stopped"));
  }

  void closing_again_ends_both_at_once() {
    ClosingStudio studio;
    for (const RunSeries* run : studio.both()) signalRanks(*run, SIGSTOP);
    studio.close(CloseAnswer::keepRunning);
    QVERIFY(!studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 1);
    studio.closes();
    for (const RunSeries* run : studio.both()) QVERIFY(processesWith(run->folder()).isEmpty());
  }

  void a_pair_that_is_killed_while_the_window_waits_does_not_go_on() {
    ClosingStudio studio;
    for (const RunSeries* run : studio.both()) signalRanks(*run, SIGSTOP);
    studio.close(CloseAnswer::keepRunning);
    studio.companion->kill();
    studio.control->kill();
    studio.closes();
    for (const RunSeries* run : studio.both()) {
      QVERIFY(processesWith(run->folder()).isEmpty());
      QVERIFY(recorded(run->folder()).state != "running");
    }
  }

  void a_run_that_begins_while_the_window_waits_is_asked_about() {
    ClosingStudio studio;
    studio.failPartner();
    const RunSeries* left = studio.companion->run();
    signalRanks(*left, SIGSTOP);
    studio.close(CloseAnswer::checkpointAndStop);
    studio.control->start();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.dialogs.close_answer = {.answer = CloseAnswer::cancel};
    signalRanks(*left, SIGCONT);
    QTRY_COMPARE_WITH_TIMEOUT(studio.dialogs.close_questions, 2, patience_ms);
    QVERIFY(studio.window->isVisible());
    QVERIFY(studio.control->isLive() && !studio.companion->isLive());
    studio.close(CloseAnswer::stopNow);
    studio.closes();
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestClosingPair)

}  // namespace test_closing_pair
#include "test_closing_pair.moc"
