// SPDX-License-Identifier: GPL-3.0-or-later
// Costs measured by ranks that really train, beside the planned ones: on the planner's bar and in the cells of the
// iso-batch explorer.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QTemporaryDir>

#include "accrue/run/whatif/iso_batch.h"
#include "plan/memory_bar.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_measured_costs {

using namespace accrue;
using namespace accrue::ui;

namespace {

class TrainingStudio : public StudioFixture {
 public:
  explicit TrainingStudio(const RunSpec& spec) : StudioFixture(std::make_shared<QTemporaryDir>(), "", "accrue-rank") {
    show();
    openSpec(spec);
  }
};

/// Counts the occurrences of a bar's first colour down the left edge: one per bar, and one in the legend.
int marks(MemoryBar* bar) {
  const QImage image = bar->grab().toImage();
  const QRgb first = image.pixel(1, 2);
  int found = 0;
  for (int y = 1; y < image.height(); ++y)
    found += image.pixel(1, y) == first && (y == 1 || image.pixel(1, y - 1) != first);
  return found;
}

}  // namespace

class TestMeasuredCosts : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_planner_sets_what_was_measured_under_what_it_planned() {
    TrainingStudio studio(smallSpec(6, 1));
    studio.action("plannerDockAction")->trigger();
    auto* bar = studio.find<MemoryBar>("plannerMemory");
    auto* measured = studio.find<QLabel>("plannerMeasured");
    QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible(), patience_ms);
    QVERIFY(!measured->isVisible());
    QVERIFY(!bar->text().contains(QStringLiteral("measured")));
    const int before = marks(bar);
    const int height = bar->sizeHint().height();
    studio.action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->state() == RunState::finished, 2 * patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(measured->isVisible(), patience_ms);
    QVERIFY2(measured->text().startsWith(QStringLiteral("Measured in \u201C")), qPrintable(measured->text()));
    QVERIFY2(measured->text().contains(QStringLiteral("6 updates took ")), qPrintable(measured->text()));
    QVERIFY2(bar->text().contains(QStringLiteral(", measured ")), qPrintable(bar->text()));
    QVERIFY(bar->sizeHint().height() > height);
    QTRY_COMPARE_WITH_TIMEOUT(marks(bar), before + 1, patience_ms);
    QVERIFY(!measured->text().contains(QStringLiteral("pauses")));
    // The newest run is shown, and time spent waiting for the user does not count.
    studio.action("runPausedAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, 2 * patience_ms);
    studio.action("pauseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, 2 * patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(measured->text().endsWith(QStringLiteral(" without the pauses")), patience_ms);
  }

  void a_cell_of_the_explorer_shows_time_memory_and_exactness() {
    RunSpec spec = smallSpec(60, 1);
    spec.accumulation.micro_batch = 1;
    spec.accumulation.steps = 2;
    TrainingStudio studio(spec);
    HostFacts host = studio.preflight->hostFacts();
    host.cores = 1;
    studio.preflight->setHostFacts(host);
    studio.action("isoBatchAction")->trigger();
    auto* grid = studio.find<QTableWidget>("isoGrid");
    QTRY_COMPARE_WITH_TIMEOUT(grid->columnCount(), 2, patience_ms);
    auto* shown = studio.find<QComboBox>("isoShown");
    const auto cell = [&](int view) {
      shown->setCurrentIndex(view);
      return grid->item(0, 0)->text().section(QLatin1Char('\n'), 1);
    };
    for (int view = 0; view < 3; ++view) QCOMPARE(cell(view), QStringLiteral("not run"));
    grid->setCurrentCell(0, 0);
    studio.find<QPushButton>("isoRun")->click();
    QTRY_VERIFY_WITH_TIMEOUT(cell(0).endsWith(QLatin1Char('s')), 2 * patience_ms);
    QCOMPARE(studio.control->run()->last().update, iso_updates);
    QTRY_VERIFY_WITH_TIMEOUT(cell(1).endsWith(QStringLiteral("iB")), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(cell(2), QStringLiteral("\u2713 exact"), patience_ms);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestMeasuredCosts)

}  // namespace test_measured_costs
#include "test_measured_costs.moc"
