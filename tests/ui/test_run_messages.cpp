// SPDX-License-Identifier: GPL-3.0-or-later
// Messages about runs go when their cause has gone.
#include "pages/runs_panel.h"
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
};

ACCRUE_WINDOW_TEST_MAIN(TestRunMessages)

}  // namespace test_run_messages
#include "test_run_messages.moc"
