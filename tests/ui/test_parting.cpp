// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs in the window: where their curves part, what differs between them, and the way there.
#include <QTreeView>

#include "canvas/parting_mark.h"
#include "made_run.h"
#include "plots/plot_area.h"
#include "runs/runs_panel.h"
#include "series/run_pair.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_parting {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

class TestParting : public QObject {
  Q_OBJECT

  static RunSeries* add(const StudioFixture& studio, const char* name, const MadeRun& made, const RunPlan& plan) {
    RunSeries* run =
        studio.library->addLive(studio.home->filePath(QString::fromLatin1(name)), plan, RunLibrary::Past::keep);
    std::vector<RunEvent> events = made.events(made.updates);
    events.push_back({supervisor_rank, 1, MadeRun::ns(99.0), RunFinished{.outcome = "finished"}});
    studio.library->append(run, events);
    return run;
  }

 private Q_SLOTS:
  void chips_stand_where_the_curves_part_and_g_puts_the_cursor_there() {
    OpenStudio studio;
    const MadeRun one{.batchesPerEpoch = 400};
    MadeRun other = one;
    // From the 13th window of four micro-steps on.
    other.loss = [&one](std::int64_t m, std::int64_t rank) { return one.loss(m, rank) + (m > 4 * 12 ? 0.5 : 0.0); };
    RunPlan changed = other.plan();
    changed.spec.optimizer.lr *= 2.0;
    changed.spec.run.seed += 1;
    RunSeries* const first = add(studio, "first", one, one.plan());
    RunSeries* const second = add(studio, "second", other, changed);
    auto* runs = studio.find<RunsPanel>("runsPanel");
    auto* mark = studio.find<PartingMark>("partingMark");
    studio.action("startPageAction")->trigger();  // the plots in its place
    runs->showOnly({first});
    runs->showAlso(second);
    auto* table = studio.find<QTreeView>("runsTable");
    table->setCurrentIndex(table->model()->index(studio.library->table()->rowOf(second), 0));
    QCOMPARE(runs->currentRun(), second);
    QTRY_COMPARE_WITH_TIMEOUT(studio.window->plots()->runs().size(), 2, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(!mark->accessibleName().isEmpty(), patience_ms);
    QVERIFY2(mark->accessibleName().startsWith(QStringLiteral("The curves part here: ")),
             qPrintable(mark->accessibleName()));
    QCOMPARE(changeTexts(*first, *second).size(), 2);
    for (const QString& key : {QStringLiteral("Learning rate"), QStringLiteral("Seed")})
      QVERIFY2(mark->accessibleName().contains(key), qPrintable(mark->accessibleName()));
    QTRY_VERIFY_WITH_TIMEOUT(mark->isVisible(), patience_ms);
    PlotArea* plots = studio.window->plots();
    plots->setClock(Clock::update);
    plots->setFocus();
    studio.press(Qt::Key_G);
    QVERIFY(!plots->readOut().isEmpty());
    QCOMPARE(plots->readOut().first(), QStringLiteral("update 13"));
    runs->showOnly({first});
    QTRY_VERIFY_WITH_TIMEOUT(mark->accessibleName().isEmpty() && !mark->isVisible(), patience_ms);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestParting)

}  // namespace test_parting
#include "test_parting.moc"
