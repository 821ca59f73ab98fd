// SPDX-License-Identifier: GPL-3.0-or-later
// Before a run: samples that stay the same while their factors are edited, and the planner.
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>
#include <QTableWidget>
#include <QTemporaryDir>
#include <numeric>

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/whatif/iso_batch.h"
#include "kit/number_text.h"
#include "kit/text.h"
#include "plan/memory_bar.h"
#include "setup/sample_lock_row.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_planning {

using namespace accrue;
using namespace accrue::ui;

namespace {

void choose(const StudioFixture& studio, int choice) {
  auto* combo = studio.find<QComboBox>("sampleLock");
  combo->setCurrentIndex(choice);
  Q_EMIT combo->activated(choice);
}

/// Whether the field shows its lock.
bool locked(const StudioFixture& studio, const char* field) {
  const auto actions = studio.find(field)->findChild<QLineEdit*>()->actions();
  return std::ranges::any_of(actions, &QAction::isVisible);
}

}  // namespace

class TestPlanning : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_samples_of_an_update_can_be_kept() {
    OpenStudio studio;  // 2 micro x 4 accum x 2 ranks
    QVERIFY(!locked(studio, "field.accumulation.steps"));
    choose(studio, 1);
    QVERIFY(locked(studio, "field.accumulation.steps") && locked(studio, "field.parallel.data"));
    QVERIFY(studio.find<QComboBox>("sampleLock")->currentText().startsWith(QStringLiteral("16 samples")));
    studio.set("accumulation.steps", std::int64_t{8});
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 1);
    studio.set("accumulation.micro_batch", std::int64_t{4});
    QCOMPARE(studio.document.spec().accumulation.steps, 2);
    studio.set("parallel.data", std::int64_t{1});
    QCOMPARE(studio.document.spec().accumulation.steps, 4);
    // One edit is one step back.
    studio.document.undoStack()->undo();
    QCOMPARE(studio.document.spec().parallel.data, 2);
    QCOMPARE(studio.document.spec().accumulation.steps, 2);
    choose(studio, 0);
    studio.set("accumulation.steps", std::int64_t{5});
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 4);
  }

  void what_cannot_be_kept_is_said_and_the_nearest_offered() {
    OpenStudio studio;
    choose(studio, 1);
    auto* row = studio.find<SampleLockRow>("sampleLockRow");
    QVERIFY(row->note().isEmpty());
    studio.set("accumulation.steps", std::int64_t{5});
    // The edit stands; nothing else has moved.
    QCOMPARE(studio.document.spec().accumulation.steps, 5);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 2);
    QVERIFY2(row->note().contains(QStringLiteral("16 samples per update cannot be kept")), qPrintable(row->note()));
    QVERIFY(row->note().contains(QStringLiteral("20")));
    auto* less = studio.find<QPushButton>("sampleLockOffer.0");
    auto* more = studio.find<QPushButton>("sampleLockOffer.1");
    QCOMPARE(less->text(), QStringLiteral("Use 4"));
    QCOMPARE(more->text(), QStringLiteral("Use 8"));
    more->click();
    QCOMPARE(studio.document.spec().accumulation.steps, 8);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 1);
    QVERIFY(row->note().isEmpty());
  }

  void nothing_is_said_of_the_samples_beside_a_value_that_is_not_valid() {
    OpenStudio studio;
    choose(studio, 1);
    auto* row = studio.find<SampleLockRow>("sampleLockRow");
    auto* steps = studio.find<QAbstractSpinBox>("field.accumulation.steps");
    auto* text = steps->findChild<QLineEdit*>();
    text->setText(QStringLiteral("5"));
    QTRY_VERIFY_WITH_TIMEOUT(!row->note().isEmpty(), patience_ms);
    text->setText(QStringLiteral("5x"));
    QVERIFY(row->note().isEmpty());
    QVERIFY(studio.find("sampleLockOffer.0")->isHidden());
    text->setText(QStringLiteral("5"));
    QTRY_VERIFY_WITH_TIMEOUT(!row->note().isEmpty(), patience_ms);
  }

  void what_keeps_the_samples_follows_a_typed_number_once_it_is_whole() {
    OpenStudio studio;  // 2 micro x 4 accum x 2 ranks
    choose(studio, 1);
    auto* steps = studio.find<QAbstractSpinBox>("field.accumulation.steps");
    const auto* row = studio.find<SampleLockRow>("sampleLockRow");
    const auto batch = [&studio] { return studio.document.spec().accumulation.micro_batch; };
    const auto type = [steps](const char* text) {
      steps->setFocus();
      steps->selectAll();
      QTest::keyClicks(steps, QString::fromLatin1(text));
    };
    type("1");
    QCOMPARE(studio.document.spec().accumulation.steps, 1);
    QCOMPARE(batch(), 2);
    QVERIFY(row->note().isEmpty());
    QTest::keyClick(steps, Qt::Key_Backspace);
    type("8");
    QCOMPARE(batch(), 2);
    QTest::keyClick(steps, Qt::Key_Return);
    QCOMPARE(batch(), 1);
    // One edit is one step back.
    studio.document.undoStack()->undo();
    QCOMPARE(studio.document.spec().accumulation.steps, 4);
    QCOMPARE(batch(), 2);
    // The focus that goes elsewhere ends it, and so does a pause.
    type("2");
    studio.find("field.optimizer.lr")->setFocus();
    QCOMPARE(batch(), 4);
    type("1");
    QCOMPARE(batch(), 4);
    QTRY_COMPARE_WITH_TIMEOUT(batch(), 8, patience_ms);
    // Run trains what was kept.
    type("4");
    studio.press(Qt::Key_F5);
    QCOMPARE(batch(), 2);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive(), patience_ms);
    studio.endRun();
  }

  void the_samples_in_total_can_be_kept() {
    OpenStudio studio(smallSpec(100));
    choose(studio, 2);
    studio.set("accumulation.steps", std::int64_t{8});
    QCOMPARE(studio.document.spec().run.updates, std::optional<std::int64_t>(50));
    // Another length is another total.
    studio.set("run.updates", std::int64_t{10});
    QVERIFY(studio.find<SampleLockRow>("sampleLockRow")->note().isEmpty());
    studio.set("accumulation.steps", std::int64_t{4});
    QCOMPARE(studio.document.spec().run.updates, std::optional<std::int64_t>(20));
  }

  void another_document_is_edited_without_the_lock_of_the_one_before() {
    OpenStudio studio;
    choose(studio, 1);
    RunSpec other = smallSpec();
    other.accumulation.micro_batch = 6;
    studio.openSpec(other);
    QCOMPARE(studio.find<QComboBox>("sampleLock")->currentText(), QStringLiteral("nothing"));
    QVERIFY(!locked(studio, "field.accumulation.steps"));
    studio.set("accumulation.steps", std::int64_t{2});
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 6);
  }

  void the_planner_divides_the_samples_of_an_update_anew() {
    OpenStudio studio;
    studio.action("plannerDockAction")->trigger();
    auto* split = studio.find<QSlider>("plannerSplit");
    auto* bar = studio.find<MemoryBar>("plannerMemory");
    QTRY_VERIFY_WITH_TIMEOUT(split->isVisible(), patience_ms);
    QCOMPARE(split->maximum(), 3);  // 8 = 1 x 8, 2 x 4, 4 x 2, 8 x 1
    QCOMPARE(split->value(), 1);
    QVERIFY(studio.find<QLabel>("plannerFits")->text().contains(QStringLiteral("fits into")));
    QVERIFY(studio.find<QLabel>("plannerTime")->text().contains(QStringLiteral("until this model has run once")));
    const QString before = bar->text();
    // While it is dragged the bar follows and the set-up does not.
    split->setSliderDown(true);
    split->setValue(3);
    QVERIFY(bar->text() != before);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 2);
    split->setSliderDown(false);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 8);
    QCOMPARE(studio.document.spec().accumulation.steps, 1);
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent() && split->value() == 3, patience_ms);
    split->setFocus();
    QTest::keyClick(split, Qt::Key_Left);
    QCOMPARE(studio.document.spec().accumulation.micro_batch, 4);
    QCOMPARE(studio.document.spec().accumulation.steps, 2);
  }

  void the_planner_says_what_is_sent_along_each_axis() {
    RunSpec spec = smallSpec();
    spec.parallel.tensor = 2;
    OpenStudio studio(spec);
    studio.action("plannerDockAction")->trigger();
    auto* sent = studio.find<QLabel>("plannerSent");
    QTRY_VERIFY_WITH_TIMEOUT(sent->isVisible(), patience_ms);
    const RankCost cost = stage_costs(spec).front();
    const auto along = [](Axis axis, std::int64_t bytes) {
      return QStringLiteral("%1 %2").arg(fromView(to_string(axis)), bytesText(bytes));
    };
    const QStringList lines = sent->text().split(QLatin1Char('\n'));
    QCOMPARE(lines.size(), 2);
    // The sync strip shows the bytes of all ranks.
    std::int64_t all = 0;
    for (const RankCost& each : rank_costs(spec)) all += std::reduce(each.wire.begin(), each.wire.end());
    QVERIFY2(lines[0].endsWith(QStringLiteral("; by all ranks together: ") + bytesText(all)), qPrintable(lines[0]));
    for (const Axis axis : {Axis::data, Axis::tensor})
      QVERIFY2(lines[0].contains(along(axis, cost.sent(axis))), qPrintable(lines[0]));
    RunSpec each = spec;
    each.accumulation.knobs.reduce_when = ReduceWhen::every_micro_step;
    const std::int64_t more = stage_costs(each).front().sent(Axis::data);
    QVERIFY(more > 3 * cost.sent(Axis::data));
    QVERIFY2(lines[1].contains(along(Axis::data, more)), qPrintable(lines[1]));
    // One rank sends nothing.
    studio.openSpec(smallSpec(1000, 1));
    QTRY_VERIFY_WITH_TIMEOUT(!sent->isVisible(), patience_ms);
  }

  void the_explorer_fills_its_grid_and_goes_on_where_it_was_left() {
    const auto home = std::make_shared<QTemporaryDir>();
    RunSpec spec = smallSpec(60, 1);
    spec.accumulation.micro_batch = 1;
    spec.accumulation.steps = 2;
    const auto open = [](StudioFixture& studio) {
      HostFacts host = studio.preflight->hostFacts();
      host.cores = 2;
      studio.preflight->setHostFacts(host);
      studio.action("isoBatchAction")->trigger();
      auto* grid = studio.find<QTableWidget>("isoGrid");
      // One rank: 1 x 2 and 2 x 1; two ranks: 1 x 1.
      QTRY_COMPARE_WITH_TIMEOUT(grid->rowCount(), 2, patience_ms);
      QCOMPARE(grid->columnCount(), 2);
      QVERIFY(!grid->item(1, 1));
    };
    {
      OpenStudio studio(home, spec, "micro_ms=1");
      open(studio);
      auto* grid = studio.find<QTableWidget>("isoGrid");
      QVERIFY(grid->item(0, 1)->text().contains(QStringLiteral("not run")));
      grid->setCurrentCell(0, 1);
      studio.find<QPushButton>("isoRun")->click();
      QTRY_VERIFY_WITH_TIMEOUT(grid->item(0, 1)->text().endsWith(QLatin1Char('s')), patience_ms);
      QVERIFY(grid->item(0, 0)->text().contains(QStringLiteral("not run")));
      QCOMPARE(studio.control->run()->last().update, iso_updates);
      QTRY_VERIFY_WITH_TIMEOUT(studio.find<QPushButton>("isoAdopt")->isEnabled(), patience_ms);
      studio.find<QPushButton>("isoAdopt")->click();
      QCOMPARE(studio.document.spec().accumulation.micro_batch, 2);
      QCOMPARE(studio.document.spec().accumulation.steps, 1);
      QCOMPARE(studio.document.spec().run.updates, std::optional<std::int64_t>(60));
    }
    OpenStudio studio(home, spec, "micro_ms=1");
    open(studio);
    auto* grid = studio.find<QTableWidget>("isoGrid");
    QTRY_VERIFY_WITH_TIMEOUT(grid->item(0, 1)->text().endsWith(QLatin1Char('s')), patience_ms);
    auto* missing = studio.find<QPushButton>("isoRunMissing");
    QTRY_COMPARE_WITH_TIMEOUT(missing->text().remove(QLatin1Char('&')), QStringLiteral("Run the missing 2"),
                              patience_ms);
    missing->click();
    QTRY_VERIFY_WITH_TIMEOUT(grid->item(1, 0)->text().endsWith(QLatin1Char('s')), patience_ms);
    QVERIFY(grid->item(0, 0)->text().endsWith(QLatin1Char('s')));
    QTRY_VERIFY_WITH_TIMEOUT(!missing->isEnabled(), patience_ms);
  }

  void the_planner_predicts_from_an_earlier_run() {
    OpenStudio studio(smallSpec(20), "micro_ms=1");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    studio.action("plannerDockAction")->trigger();
    auto* time = studio.find<QLabel>("plannerTime");
    QTRY_VERIFY_WITH_TIMEOUT(time->text().startsWith(QStringLiteral("About")), patience_ms);
    QVERIFY(time->text().contains(QStringLiteral("at the pace of")));
    studio.set("accumulation.micro_batch", std::int64_t{4});
    QTRY_VERIFY_WITH_TIMEOUT(time->text().contains(QStringLiteral("another micro-batch")), patience_ms);
    studio.set("model.width", std::int64_t{32});
    QTRY_VERIFY_WITH_TIMEOUT(time->text().startsWith(QStringLiteral("Duration unknown")), patience_ms);
  }

  void the_lesson_of_what_fits_shows_the_bar_that_it_speaks_of() {
    StudioFixture studio;
    studio.show();
    auto* dock = studio.find<QDockWidget>("plannerDock");
    studio.window->openPath(QStringLiteral(":/lessons/7-fits-or-not.accrue-lesson"));
    QTRY_VERIFY_WITH_TIMEOUT(studio.find<MemoryBar>("plannerMemory")->isVisible(), patience_ms);
    QCOMPARE(studio.window->dockWidgetArea(dock), Qt::RightDockWidgetArea);
    studio.action("leaveLessonAction")->trigger();
    QCOMPARE(studio.window->dockWidgetArea(dock), Qt::LeftDockWidgetArea);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestPlanning)

}  // namespace test_planning
#include "test_planning.moc"
