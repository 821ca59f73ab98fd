// SPDX-License-Identifier: GPL-3.0-or-later
// "What would each dialect do" and "run all five", in a whole window over fake ranks.
#include <QAction>
#include <QClipboard>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTreeView>

#include "compare/dialect_panel.h"
#include "compare/dialect_strip.h"
#include "compare/variants.h"
#include "live/run_queue.h"
#include "plots/plot_area.h"
#include "runs/run_table_model.h"
#include "runs/runs_panel.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_dialects {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// Ten batches of one sample, N = 4.
RunSpec tenBatches() {
  RunSpec spec;
  spec.model.kind = ModelKind::linear;
  spec.model.inputs = spec.model.outputs = 1;
  spec.data.kind = DataKind::inline_;
  spec.data.shuffle = false;
  for (int b = 1; b <= 10; ++b) {
    spec.data.x.push_back({1.0 * b});
    spec.data.y.push_back({2.0 * b});
  }
  spec.optimizer.kind = OptimizerKind::sgd;
  spec.accumulation.steps = 4;
  spec.accumulation.micro_batch = 1;
  spec.run.updates.reset();
  spec.run.epochs = 1;
  spec.run.name = "Ten";
  return spec;
}

DialectPlans* dialectPlans(const StudioFixture& studio) {
  for (auto* each : studio.window->findChildren<PlanFollower*>())
    if (auto* plans = dynamic_cast<DialectPlans*>(each)) return plans;
  qFatal("the window follows no dialects");
}

DialectPanel* openPanel(const StudioFixture& studio) {
  studio.action("compareDialectsAction")->trigger();
  auto* panel = studio.find<DialectPanel>("dialectPanel");
  auto* runner = dialectPlans(studio);
  [&] { QTRY_VERIFY_WITH_TIMEOUT(runner->isCurrent(), patience_ms); }();
  return panel;
}

RunQueue* queueOf(const StudioFixture& studio) {
  return studio.window->findChild<RunQueue*>();
}

std::vector<QueuedState> statesOf(const RunQueue& queue) {
  std::vector<QueuedState> states;
  for (const QueuedRun& run : queue.runs()) states.push_back(run.state);
  return states;
}

}  // namespace

class TestDialects : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_dialect_has_a_strip_that_follows_the_form() {
    OpenStudio studio(tenBatches());
    DialectPanel* panel = openPanel(studio);
    QVERIFY(panel->isVisible());
    QVERIFY(!panel->isModal());
    QVERIFY(panel->card(Dialect::llm)->text().contains(QStringLiteral("stay in the gradients and never reach")));
    QVERIFY(panel->card(Dialect::colossalai)->text().contains(QStringLiteral("batches 9 and 10 are never seen")));
    QVERIFY(panel->card(Dialect::accelerate)->text().contains(QStringLiteral("divided by 4 (half weight)")));
    QVERIFY(panel->card(Dialect::mmengine)->text().contains(QStringLiteral("divided by 2 (full weight)")));
    QVERIFY(panel->card(Dialect::accrue)->text().contains(QStringLiteral("divided by its own items")));
    QVERIFY(panel->card(Dialect::mmengine)->text().contains(QStringLiteral("use position 3, 7, 9")));
    studio.set("accumulation.steps", std::int64_t{5});
    QTRY_VERIFY_WITH_TIMEOUT(
        panel->card(Dialect::llm)->text().contains(QStringLiteral("a window is full: nothing is left over")),
        patience_ms);
  }

  void nobody_looks_and_nothing_is_worked_out() {
    StudioFixture studio;
    studio.show();
    auto* runner = dialectPlans(studio);
    QSignalSpy worked(runner, &PlanFollower::finished);
    studio.openSpec(tenBatches());
    QVERIFY(!runner->isCurrent());
    DialectPanel* panel = openPanel(studio);
    const auto before = worked.count();
    panel->close();
    studio.set("accumulation.steps", std::int64_t{3});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    QCOMPARE(worked.count(), before);
    QVERIFY(!runner->isCurrent());
    panel->show();
    QTRY_VERIFY_WITH_TIMEOUT(runner->isCurrent(), patience_ms);
  }

  void a_button_sets_the_dialect_and_undo_takes_it_back() {
    RunSpec spec = tenBatches();
    spec.accumulation.knobs.tail = EpochTail::carry;
    OpenStudio studio(spec);
    DialectPanel* panel = openPanel(studio);
    QVERIFY(!panel->card(Dialect::accrue)->useButton()->isEnabled());
    QVERIFY(panel->card(Dialect::mmengine)->text().contains(QStringLiteral("tail = \"carry\" is left out")));
    QTest::mouseClick(panel->card(Dialect::mmengine)->useButton(), Qt::LeftButton);
    QCOMPARE(studio.document.spec().accumulation.dialect, Dialect::mmengine);
    QVERIFY(!studio.document.spec().accumulation.knobs.tail);
    QTRY_VERIFY_WITH_TIMEOUT(!panel->card(Dialect::mmengine)->useButton()->isEnabled(), patience_ms);
    studio.action("undoAction")->trigger();
    QVERIFY(studio.document.spec() == spec);
  }

  void enter_on_a_strip_sets_the_dialect() {
    OpenStudio studio(tenBatches());
    DialectPanel* panel = openPanel(studio);
    QTest::keyClick(panel->card(Dialect::llm)->strip(), Qt::Key_Return);
    QCOMPARE(studio.document.spec().accumulation.dialect, Dialect::llm);
  }

  void keys_walk_the_cells_and_say_them() {
    OpenStudio studio(tenBatches());
    DialectPanel* panel = openPanel(studio);
    auto* detail = panel->findChild<QLabel*>(QStringLiteral("dialectDetail"));
    DialectStrip* strip = panel->card(Dialect::accelerate)->strip();
    strip->setFocus();
    QTest::keyClick(strip, Qt::Key_Right);
    QCOMPARE(strip->currentCell(), 0);
    QVERIFY2(detail->text().startsWith(QStringLiteral("Batch 1 of epoch 1: micro-step 1, 1 of 4 in its window.")),
             qPrintable(detail->text()));
    QTest::keyClick(strip, Qt::Key_End);
    QCOMPARE(strip->currentCell(), 9);
    for (const char* part : {"Batch 10 of epoch 1", "Loss divided by 4.", "the epoch ends", "schedule position 2",
                             "Schedule position after it: 3"})
      QVERIFY2(detail->text().contains(QLatin1String(part)), qPrintable(detail->text()));
    QVERIFY(strip->accessibleDescription().contains(QStringLiteral("Batch 10 of epoch 1")));
    strip = panel->card(Dialect::colossalai)->strip();
    strip->setFocus();
    QTest::keyClick(strip, Qt::Key_End);
    QCOMPARE(detail->text(), QStringLiteral("Batch 10 of epoch 1: never seen."));
  }

  void the_text_twin_says_what_is_drawn() {
    OpenStudio studio(tenBatches());
    DialectPanel* panel = openPanel(studio);
    for (const Dialect dialect : all_dialects) {
      const DialectStrip* strip = panel->card(dialect)->strip();
      QVERIFY(!strip->accessibleName().isEmpty());
      QCOMPARE(strip->accessibleDescription(), strip->text());
    }
    QVERIFY(panel->card(Dialect::llm)->strip()->text().contains(QStringLiteral("bbbBSZL bbbBSZL bb|")));
    QTest::mouseClick(panel->findChild<QPushButton*>(QStringLiteral("copyDialects")), Qt::LeftButton);
    const QString copied = QGuiApplication::clipboard()->text();
    for (const char* part : {"bLbLbLBSZL", "Colossal-AI", "never seen", "3, after micro-steps 4, 8, 10"})
      QVERIFY2(copied.contains(QLatin1String(part)), part);
  }

  void a_dialect_that_refuses_says_why_and_cannot_be_used() {
    RunSpec spec = tenBatches();
    spec.accumulation.max_iters = 10;
    OpenStudio studio(spec);
    const DialectPanel* panel = openPanel(studio);
    QVERIFY(panel->card(Dialect::accrue)->text().contains(QStringLiteral("Refused:")));
    QVERIFY(panel->card(Dialect::accrue)->strip()->isHidden());
    QVERIFY(panel->card(Dialect::mmengine)->useButton()->isEnabled());
  }

  void the_same_batch_stands_in_the_same_column() {
    HostFacts host;
    const RunSpec spec = tenBatches();
    const auto comparison = compare_dialects(spec, host, *scan_data(spec, "."), ".");
    const DialectColumns layout = DialectColumns::of(comparison, 16);
    QCOMPARE(layout.columns.size(), std::size_t{10});
    const auto kinds = [&](Dialect dialect) {
      const auto row = static_cast<std::size_t>(std::ranges::find(all_dialects, dialect) - all_dialects.begin());
      std::vector<CellKind> found;
      for (const DialectCell& cell : layout.cells[row]) {
        found.push_back(cell.kind);
        if (cell.kind != CellKind::dropped) {
          const DialectColumn& column = layout.columns[static_cast<std::size_t>(cell.column)];
          if (column.batch != cell.step.plan.batch) found.clear();
        }
      }
      return found;
    };
    std::vector<CellKind> expected(10, CellKind::trained);
    QCOMPARE(kinds(Dialect::accelerate), expected);
    expected[8] = expected[9] = CellKind::unused;
    QCOMPARE(kinds(Dialect::llm), expected);
    expected[8] = expected[9] = CellKind::dropped;
    QCOMPARE(kinds(Dialect::colossalai), expected);
    QVERIFY(layout.columns.back().ends_epoch);
    QVERIFY(!layout.columns.front().ends_epoch);
  }

  void the_card_of_the_form_has_the_button() {
    OpenStudio studio(tenBatches());
    auto* button = studio.find<QAbstractButton>("section.accumulation.compareDialectsAction");
    QVERIFY(button && button->isVisible());
    QTest::mouseClick(button, Qt::LeftButton);
    QVERIFY(studio.find<DialectPanel>("dialectPanel")->isVisible());
  }

  void run_all_five_trains_each_dialect_once_and_compares_them() {
    OpenStudio studio(tenBatches(), "micro_ms=1");
    DialectPanel* panel = openPanel(studio);
    QSignalSpy done(queueOf(studio), &RunQueue::finished);
    QTest::mouseClick(panel->findChild<QPushButton*>(QStringLiteral("runAllButton")), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 4 * patience_ms);
    QCOMPARE(statesOf(*queueOf(studio)), std::vector<QueuedState>(5, QueuedState::finished));
    QSet<QString> names;
    for (const RunSeries* run : studio.library->table()->runs()) names.insert(run->name());
    QCOMPARE(names, (QSet<QString>{QStringLiteral("Ten, llm"), QStringLiteral("Ten, colossalai"),
                                   QStringLiteral("Ten, accelerate"), QStringLiteral("Ten, mmengine"),
                                   QStringLiteral("Ten, accrue")}));
    for (const RunSeries* run : studio.library->table()->runs()) {
      const bool short_run = run->name().endsWith(QStringLiteral("llm")) || run->name().endsWith(QStringLiteral("ai"));
      QCOMPARE(run->last().update, short_run ? 2 : 3);
    }
    QCOMPARE(studio.find<RunsPanel>("runsPanel")->shownRuns().size(), 5);
    QCOMPARE(studio.window->plots()->clock(), Clock::sample);
    QVERIFY(studio.document.spec() == tenBatches());
    QVERIFY(studio.action("runAllDialectsAction")->isEnabled());
    QVERIFY(panel->card(Dialect::llm)->text().contains(QStringLiteral("finished")));
  }

  void seven_optimizers_train_one_after_another() {
    RunSpec spec = tenBatches();
    spec.accumulation.micro_batch = 1;
    OpenStudio studio(spec, "micro_ms=1");
    QSignalSpy done(queueOf(studio), &RunQueue::finished);
    studio.action("runAllOptimizersAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 4 * patience_ms);
    QStringList names;
    for (const RunSeries* run : studio.library->table()->runs()) names << run->name();
    names.sort();
    QCOMPARE(names.join(QLatin1String("; ")),
             QStringLiteral("Ten, CPUAdam; Ten, FusedAdam; Ten, FusedLAMB; Ten, FusedSGD; Ten, HybridAdam; Ten, Lamb; "
                            "Ten, Lars"));
    for (const RunSeries* run : studio.library->table()->runs()) {
      QCOMPARE(run->last().update, 3);
      QVERIFY(run->plan() && run->plan()->spec.run.update_norm);
      QCOMPARE(run->series(Metric::updateNorm).size(), std::size_t{3});
    }
    QVERIFY(studio.find(updateNormPlot)->isVisible());
    QCOMPARE(studio.find<RunsPanel>("runsPanel")->shownRuns().size(), 7);
    QCOMPARE(studio.window->plots()->clock(), Clock::sample);
    QVERIFY(studio.document.spec() == spec);
    const QString said = studio.window->findChild<MessageBar*>()->text();
    QVERIFY2(said.contains(QStringLiteral("7 runs")), qPrintable(said));
  }

  void nothing_else_can_be_chosen_while_the_ways_are_planned() {
    OpenStudio studio(tenBatches(), "micro_ms=1");
    QSignalSpy done(queueOf(studio), &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    for (const char* other : {"runAllDialectsAction", "runAllOptimizersAction", "runSeedsAction"})
      QVERIFY2(!studio.action(other)->isEnabled(), other);
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 4 * patience_ms);
    QVERIFY(studio.action("runAllOptimizersAction")->isEnabled());
  }

  void a_set_up_that_is_opened_meanwhile_is_not_trained() {
    OpenStudio studio(tenBatches(), "micro_ms=1");
    studio.action("runAllDialectsAction")->trigger();
    RunSpec other = tenBatches();
    other.accumulation.steps = 2;
    studio.document.reset(other, QStringLiteral("Other.accrue"));
    auto* bar = studio.window->findChild<MessageBar*>();
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("another set-up was opened")),
                              qPrintable(bar->text()), patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.action("runAllDialectsAction")->isEnabled(), patience_ms);
    QVERIFY(!queueOf(studio)->isActive());
    QVERIFY(studio.library->table()->runs().empty());
  }

  void a_run_that_begins_meanwhile_stays_alone() {
    OpenStudio studio(tenBatches(), "micro_ms=40");
    studio.action("runAllDialectsAction")->trigger();
    studio.action("runAction")->trigger();
    auto* bar = studio.window->findChild<MessageBar*>();
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("another run has begun")), qPrintable(bar->text()),
                              patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QCOMPARE(studio.library->table()->runs().size(), 1);
    QVERIFY(!queueOf(studio)->isActive());
  }

  void a_run_that_fails_does_not_hold_up_the_others() {
    OpenStudio studio(tenBatches(),
                      "micro_ms=1,fail=0@9:data");  // Colossal-AI and none else never gets to micro-step 9
    QSignalSpy done(queueOf(studio), &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 4 * patience_ms);
    using enum QueuedState;
    QCOMPARE(statesOf(*queueOf(studio)),
             (std::vector<QueuedState>{failed, QueuedState::finished, failed, failed, failed}));
    QVERIFY(queueOf(studio)->sentence().contains(QStringLiteral("1 of 5 runs finished, 4 (llm; ")));
  }

  void cancelling_leaves_out_the_rest() {
    OpenStudio studio(tenBatches(), "micro_ms=40");
    RunQueue* queue = queueOf(studio);
    QSignalSpy done(queue, &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive(), patience_ms);
    QVERIFY(!studio.action("runAction")->isEnabled());
    QVERIFY(!studio.action("runAllDialectsAction")->isEnabled());
    auto* bar = studio.window->findChild<MessageBar*>();
    QVERIFY2(bar->text().contains(QStringLiteral("Run 1 of 5: llm is training")), qPrintable(bar->text()));
    queue->cancel();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, patience_ms);
    using enum QueuedState;
    QCOMPARE(statesOf(*queue),
             (std::vector<QueuedState>{QueuedState::finished, left_out, left_out, left_out, left_out}));
  }

  void stopping_a_run_leaves_out_the_rest() {
    OpenStudio studio(tenBatches(), "micro_ms=100");
    RunQueue* queue = queueOf(studio);
    QSignalSpy done(queue, &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.action("stopAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, patience_ms);
    QCOMPARE(studio.library->table()->runs().size(), 1);
    QVERIFY(queue->sentence().contains(QStringLiteral("4 left out")));
  }

  void a_refused_dialect_is_left_out_of_the_runs() {
    RunSpec spec = tenBatches();
    spec.accumulation.max_iters = 10;  // MMEngine's own: the spec's own dialect refuses it
    OpenStudio studio(spec, "micro_ms=1");
    QSignalSpy done(queueOf(studio), &RunQueue::finished);
    studio.action("runAllDialectsAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(done.count(), 1, 4 * patience_ms);
    QCOMPARE(queueOf(studio)->runs().size(), std::size_t{4});
    const QString said = studio.window->findChild<MessageBar*>()->text();
    QVERIFY2(said.contains(QStringLiteral("Accrue is left out")), qPrintable(said));
  }

  void the_example_opens_with_its_comparison() {
    StudioFixture studio;
    studio.show();
    studio.find<QPushButton>("startTenBatches")->click();
    QCOMPARE(studio.document.spec().run.name, std::string("Ten batches"));
    QCOMPARE(studio.document.spec().data.x.size(), std::size_t{10});
    auto* panel = studio.find<DialectPanel>("dialectPanel");
    QVERIFY(panel && panel->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(panel->card(Dialect::llm)->text().contains(QStringLiteral("never reach")), patience_ms);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestDialects)

}  // namespace test_dialects
#include "test_dialects.moc"
