// SPDX-License-Identifier: GPL-3.0-or-later
// A plan is made, sketched and outlined by jobs: the thread that draws the window walks none of it.
#include <sys/resource.h>

#include <QSignalSpy>
#include <QTest>

#include "accrue/run/preflight/preflight.h"
#include "document/preflight_runner.h"
#include "document/spec_document.h"
#include "series/plan_outline.h"
#include "series/run_series.h"
#include "support/long_plans.h"
#include "support/test_program.h"

namespace test_long_plans {

using namespace accrue;
using namespace accrue::ui;

namespace {

constexpr int patience_ms = 30000;

/// Processor time of the process, or of this thread.
double secondsUsed(int whose) {
  rusage usage{};
  ::getrusage(whose, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

}  // namespace

class TestLongPlans : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_window_waits_for_no_plan_data() { accrue::test::addLongPlans(); }

  void the_window_waits_for_no_plan() {
    QFETCH(QString, settings);
    SpecDocument document;
    PreflightRunner runner(&document);
    HostFacts host = runner.hostFacts();
    host.memory_bytes = 0;  // not known: nothing is refused for it
    document.reset(accrue::test::spec_of(settings), QStringLiteral("long"));
    const double all = secondsUsed(RUSAGE_SELF);
    const double own = secondsUsed(RUSAGE_THREAD);
    QSignalSpy finished(&runner, &PreflightRunner::finished);
    runner.setHostFacts(host);
    QVERIFY(!runner.isCurrent());  // what a job finds comes through the event loop, and never before
    QVERIFY(finished.wait(patience_ms));
    QCOMPARE(runner.sketch().has_value(), runner.result().plan.has_value());
    const double took = secondsUsed(RUSAGE_SELF) - all;
    QVERIFY2(took < 1.0, QByteArray::number(took));
    if (runner.result().plan) {
      RunSeries run(QStringLiteral("long"), 0);
      run.setPlan(*runner.result().plan);
      QVERIFY(run.plannedLearningRate(Clock::update).empty());
    }  // which gives up its outline
    const double drawn = secondsUsed(RUSAGE_THREAD) - own;
    QVERIFY2(drawn < 0.1, QByteArray::number(drawn));
  }

  /// As many points as are drawn, whatever lies between them.
  void an_outline_costs_what_is_drawn_data() { accrue::test::addLongPlans(); }

  void an_outline_costs_what_is_drawn() {
    QFETCH(QString, settings);
    const Preflight result = preflight_files(accrue::test::spec_of(settings), HostFacts(), ".");
    if (!result.plan) return;
    const std::atomic<bool> cancelled = false;
    const double before = secondsUsed(RUSAGE_THREAD);
    const PlanOutline outline = outlineOf(*result.plan, cancelled);
    const double took = secondsUsed(RUSAGE_THREAD) - before;
    QVERIFY2(took < 1.0, QByteArray::number(took));
    QVERIFY(outline.totals.updates == 0 ||
            outline.points.back().at[Clock::update] == static_cast<double>(outline.totals.updates));
  }
};

ACCRUE_TEST_MAIN(TestLongPlans)

}  // namespace test_long_plans
#include "test_long_plans.moc"
