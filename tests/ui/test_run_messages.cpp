// SPDX-License-Identifier: GPL-3.0-or-later
// Messages about runs go when their cause has gone.
#include "runs/runs_panel.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_run_messages {

using namespace accrue;
using namespace accrue::ui;

namespace {

QString shownId(const StudioFixture& studio) {
  const auto* bar = studio.find<MessageBar>("messageBar");
  return bar->isVisible() ? bar->currentId() : QString();
}

}  // namespace

class TestRunMessages : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_offer_to_attach_goes_when_the_run_has_ended() {
    RunningStudio host("micro_ms=20");
    StudioFixture other(host.home, "micro_ms=20");
    other.window->show();
    QVERIFY(other.offered("Attach"));
    QCOMPARE(shownId(other), QStringLiteral("interrupted"));
    host.endRun();
    QTRY_COMPARE_WITH_TIMEOUT(shownId(other), QString(), patience_ms);
  }

  void a_runs_failure_is_withdrawn_when_the_next_run_begins() {
    OpenStudio studio(smallSpec(50), "micro_ms=5,fail=1@9:numerics");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(shownId(studio), QStringLiteral("end"), patience_ms);
    qputenv("ACCRUE_FAKE_RANK", "micro_ms=20");
    studio.action("runAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QCOMPARE(shownId(studio), QString());
    studio.endRun();
  }

  void what_the_queue_came_to_is_withdrawn_when_the_next_run_begins() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    studio.action("queueRunAction")->trigger();
    auto* bar = studio.find<MessageBar>("messageBar");
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && !studio.control->isLive() &&
                                 bar->currentId() == QLatin1String("queue") &&
                                 !studio.find<QPushButton>("messageAction")->isVisible(),
                             patience_ms);
    studio.openSpec(smallSpec(100'000));
    qputenv("ACCRUE_FAKE_RANK", "micro_ms=20");
    studio.action("runAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QCOMPARE(shownId(studio), QString());
    studio.endRun();
  }

  void the_queue_offers_to_cancel_only_what_waits_and_to_go_on_after_a_stop() {
    OpenStudio studio(smallSpec(100'000), "micro_ms=20");
    const auto* bar = studio.find<MessageBar>("messageBar");
    const auto* button = studio.find<QPushButton>("messageAction");
    studio.action("queueRunAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QCOMPARE(shownId(studio), QStringLiteral("queue"));
    QVERIFY(!button->isVisible());
    studio.set("accumulation.steps", std::int64_t{2});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    studio.action("queueRunAction")->trigger();
    auto* cancel = studio.offered("Cancel the rest");
    QVERIFY(cancel);
    cancel->click();
    QVERIFY(!button->isVisible());
    studio.endRun();
    auto* go_on = studio.offered("Go on with the rest");
    QVERIFY(go_on);
    QVERIFY2(bar->text().contains(QStringLiteral("1 (test, N = 4) stopped by you, 1 left out")),
             qPrintable(bar->text()));
    go_on->click();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QCOMPARE(studio.control->run()->spec()->accumulation.steps, 2);
    QVERIFY(!button->isVisible());
    studio.endRun();
  }

  void a_queue_of_one_run_counts_nothing() {
    OpenStudio studio(smallSpec(2), "micro_ms=1");
    studio.action("queueRunAction")->trigger();
    const auto* bar = studio.find<MessageBar>("messageBar");
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QStringLiteral("The run has finished"), patience_ms);
    studio.openSpec(smallSpec(100'000));
    studio.action("queueRunAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive(), patience_ms);
    studio.endRun();
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QStringLiteral("You stopped the run"), patience_ms);
  }

  void the_queue_names_the_run_that_failed() {
    // The second run is queued while the first one trains, and has no micro-step 100.
    OpenStudio studio(smallSpec(50), "micro_ms=20,fail=1@100:data");
    studio.action("queueRunAction")->trigger();
    RunSpec second = smallSpec(2);
    second.accumulation.steps = 2;
    studio.openSpec(second);
    studio.action("queueRunAction")->trigger();
    const auto* bar = studio.find<MessageBar>("messageBar");
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("1 (test, N = 4) did not finish")),
                              qPrintable(bar->text()), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QStringLiteral("1 of 2 runs finished, 1 (test, N = 4) did not"),
                              patience_ms);
  }

  void of_many_problems_the_newest_and_the_last_failure_are_kept() {
    RunSeries run(QStringLiteral("r"), 0);
    std::vector<RunEvent> events{{0, 0, 0, RankFailed{.class_name = "numerics", .message = "failed"}}};
    for (std::int64_t i = 1; i <= 1000; ++i)
      events.push_back({0, i, i, Warning{"numerics", std::to_string(i), "Lower the rate", i}});
    run.append(events);
    QCOMPARE(run.problemCount(), std::size_t{1001});
    QCOMPARE(run.problems().size(), RunReport::mostProblems);
    QVERIFY(run.problems().front().fatal);
    QCOMPARE(run.problems().back().message, QStringLiteral("1000"));
    run.clear();
    QCOMPARE(run.problemCount(), std::size_t{0});
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestRunMessages)

}  // namespace test_run_messages
#include "test_run_messages.moc"
