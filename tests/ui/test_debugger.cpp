// SPDX-License-Identifier: GPL-3.0-or-later
// Stepping through a run in the window: the keys, what the window dock and the inspector show at each stop. The fake
// ranks' sum has the norm of its position, and their first weight moves by 1 at each step.
#include <QDockWidget>
#include <QLabel>
#include <QScrollBar>
#include <QTableWidget>

#include "accrue/run/window/lr_curve.h"
#include "kit/number_text.h"
#include "live/accumulation_panel.h"
#include "live/gradient_pool.h"
#include "live/held_phases.h"
#include "made_run.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/state_chip.h"

namespace test_debugger {

using namespace accrue;
using namespace accrue::ui;

class TestDebugger : public QObject {
  Q_OBJECT

  static bool stands(const StudioFixture& studio, StepPhase phase) {
    const Held* held = studio.control->held().newest();
    return studio.control->state() == RunState::paused && held != nullptr && held->phase == phase &&
           studio.control->held().ranks().size() == 2;
  }

 private Q_SLOTS:
  void the_window_panel_shows_all_ranks_after_one_micro_step() {
    OpenStudio studio;
    const accrue::test::MadeRun made{.steps = 16, .ranks = 2};
    RunSeries run(QStringLiteral("run"), 0);
    run.setPlan(made.plan());
    const auto report = [&](std::int64_t rank, std::int64_t from, std::int64_t to) {
      for (std::int64_t m = from; m <= to; ++m) run.append({made.microStep(rank, m, 1.0, 8)});
    };
    report(0, 1, 13);
    report(1, 1, 8);
    auto* panel = studio.find<AccumulationPanel>("windowPanel");
    const auto* pool = studio.find<GradientPool>("gradientPool");
    panel->setRun(&run);
    QCOMPARE(studio.find<QLabel>("windowCount")->text(), QStringLiteral("8 of 16 micro-steps"));
    QCOMPARE(pool->text(), QStringLiteral("rank 0: 8 of 16, 64 items; rank 1: 8 of 16, 64 items"));
    QCOMPARE(studio.find<QLabel>("windowTokens")->text(), QStringLiteral("128 items (50 + 50 %)"));
    report(1, 9, 13);
    panel->refresh();
    QCOMPARE(studio.find<QLabel>("windowCount")->text(), QStringLiteral("13 of 16 micro-steps"));
    panel->setRun(nullptr);
  }

  void f10_starts_paused_and_goes_through_every_phase() {
    RunSpec spec = smallSpec();
    spec.schedule.kind = ScheduleKind::cosine;
    spec.run.updates = 10;
    OpenStudio studio(spec, "micro_ms=2");
    studio.press(Qt::Key_F10);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QCOMPARE(studio.control->ranks().ranks().at(0).micro_step, 0);
    studio.find<QDockWidget>("inspectorDock")->raise();
    auto* phases = studio.find<QTableWidget>("inspectorPhases");
    auto* values = studio.find<QTableWidget>("inspectorValues");
    const auto value = [&](int row, int column) {
      const QTableWidgetItem* item = values->item(row, column);
      return item ? item->text() : QString();
    };
    auto* title = studio.find<QLabel>("windowPhase");
    const auto cell = [&](StepPhase phase, int column) {
      const auto row = std::ranges::find(allPhases, phase) - allPhases.begin();
      const QTableWidgetItem* item = phases->item(static_cast<int>(row), column);
      return item ? item->text() : QString();
    };
    for (int micro = 1; micro <= 4; ++micro)
      for (const StepPhase phase : allPhases) {
        if (micro < 4 && phase > StepPhase::backward) continue;
        studio.press(Qt::Key_F10);
        QTRY_VERIFY_WITH_TIMEOUT(stands(studio, phase), patience_ms);
        QCOMPARE(studio.control->held().newest()->position, micro);
        const QString word = QString::fromStdString(std::string(to_string(phase)));
        QTRY_COMPARE_WITH_TIMEOUT(title->text(), QStringLiteral("Paused after ") + word, patience_ms);
        QTRY_COMPARE_WITH_TIMEOUT(cell(phase, 0), QStringLiteral("\u25b6 ") + word, patience_ms);
        if (phase == StepPhase::backward) {
          QCOMPARE(cell(phase, 1), QStringLiteral("norm %1").arg(valueText(micro)));
          QTRY_COMPARE_WITH_TIMEOUT(studio.control->ranks().ranks().at(0).filled, micro, patience_ms);
        }
        if (phase == StepPhase::step)
          QCOMPARE(cell(phase, 2), QStringLiteral("%1 \u2192 %2").arg(valueText(0.0), valueText(1.0)));
        // Of two weights: now, before the micro-step, and the sum of the gradients on each rank.
        const double moved = phase >= StepPhase::step ? 1.0 : 0.0;
        QTRY_COMPARE_WITH_TIMEOUT(value(0, 0), valueText(moved, 4), patience_ms);
        QCOMPARE(value(1, 0), valueText(-moved, 4));
        for (int row = 0; row < 2; ++row) QCOMPARE(value(row, 1), valueText(0.0, 4));
        for (int rank = 0; rank < 2; ++rank) {
          QCOMPARE(value(0, 2 + rank), valueText(micro, 4));
          QCOMPARE(value(1, 2 + rank), valueText(rank, 4));
        }
      }
    // The learning rate of the first update and of the second, by the curve.
    const LrCurve& curve = studio.control->run()->plan()->curve;
    QVERIFY(lr_at(curve, 0) != lr_at(curve, 1));
    QCOMPARE(cell(StepPhase::schedule, 1),
             QStringLiteral("%1 \u2192 %2").arg(valueText(lr_at(curve, 0), 4), valueText(lr_at(curve, 1), 4)));
    // The full window's numbers stand beside those of the boundary.
    QCOMPARE(cell(StepPhase::scale, 1), QStringLiteral("\u00d7 %1").arg(valueText(0.25)));
    QVERIFY(studio.window->actions()[Command::stepPhase]->isEnabled());
    studio.endRun();
  }

  void the_inspector_is_filled_in_when_it_is_looked_at_and_two_ranks_need_no_scrolling() {
    OpenStudio studio(smallSpec(), "micro_ms=2");
    studio.find<QDockWidget>("windowDock")->raise();
    studio.press(Qt::Key_F10);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    studio.press(Qt::Key_F10);
    QTRY_VERIFY_WITH_TIMEOUT(stands(studio, StepPhase::forward), patience_ms);
    auto* phases = studio.find<QTableWidget>("inspectorPhases");
    QCOMPARE(phases->columnCount(), 0);
    studio.find<QDockWidget>("inspectorDock")->raise();
    QTRY_COMPARE_WITH_TIMEOUT(phases->columnCount(), 3, patience_ms);
    for (const char* table : {"inspectorPhases", "inspectorValues"}) {
      const auto* shown = studio.find<QTableWidget>(table);
      QTRY_VERIFY(shown->isVisible());
      QTRY_COMPARE(shown->horizontalScrollBar()->maximum(), 0);
    }
    studio.endRun();
  }

  void f11_stops_with_a_full_tank() {
    OpenStudio studio(smallSpec(), "micro_ms=2");
    studio.action("runPausedAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    for (int micro = 1; micro <= 4; ++micro) {
      studio.press(Qt::Key_F11);
      QTRY_VERIFY_WITH_TIMEOUT(stands(studio, StepPhase::backward), patience_ms);
      QTRY_COMPARE_WITH_TIMEOUT(studio.control->ranks().ranks().at(1).filled, micro, patience_ms);
      QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    }
    auto* count = studio.find<QLabel>("windowCount");
    QTRY_COMPARE_WITH_TIMEOUT(count->text(), QStringLiteral("4 of 4 micro-steps"), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.find<QLabel>("windowSaid")->text(),
                              QStringLiteral("The window is full; next the ranks reduce"), patience_ms);
    QVERIFY(count->font().pointSizeF() > studio.window->font().pointSizeF());
    auto* pool = studio.find<GradientPool>("gradientPool");
    QVERIFY(pool->tankRect(0).height() >= 72);
    QVERIFY(pool->rect().contains(pool->tankRect(1)));
    QVERIFY(!studio.control->ranks().drained());
    // The levelled tanks stand still, too; Shift+F11 completes the update.
    studio.press(Qt::Key_F10);
    QTRY_VERIFY_WITH_TIMEOUT(stands(studio, StepPhase::reduce), patience_ms);
    studio.press(Qt::Key_F11, Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->ranks().drained(), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QCOMPARE(studio.control->ranks().lastEnd()->update, 1);
    studio.endRun();
  }

  void each_press_of_f11_counts_while_a_step_is_under_way() {
    OpenStudio studio(smallSpec(), "micro_ms=200");
    studio.action("runPausedAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    const auto stands_at = [&studio](int micro) {
      return stands(studio, StepPhase::backward) && studio.control->held().newest()->micro_step == micro;
    };
    const auto wait = [&studio] { return studio.control->stepsWaiting(); };
    for (int press = 0; press < 3; ++press) studio.press(Qt::Key_F11);
    QCOMPARE(wait(), 2);
    QTRY_VERIFY_WITH_TIMEOUT(stands_at(3), patience_ms);
    QCOMPARE(wait(), 0);
    // Also one that comes after the ranks have begun to move, and of another kind.
    studio.press(Qt::Key_F11);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.press(Qt::Key_F10);
    QTRY_VERIFY_WITH_TIMEOUT(stands(studio, StepPhase::reduce), patience_ms);
    QCOMPARE(studio.control->held().newest()->micro_step, 4);
    // A key that is held down does not run on for long.
    for (int press = 0; press < 100; ++press) studio.press(Qt::Key_F11);
    QVERIFY(wait() < 20);
    studio.press(Qt::Key_F8);
    QCOMPARE(wait(), 0);
    studio.endRun();
  }

  void each_press_of_f11_counts_while_the_run_starts() {
    OpenStudio studio(smallSpec(), "micro_ms=2,join_ms=500");
    for (int press = 0; press < 4; ++press) studio.press(Qt::Key_F11);  // the first starts the run
    QTRY_VERIFY_WITH_TIMEOUT(stands(studio, StepPhase::backward) && studio.control->held().newest()->micro_step == 3,
                             patience_ms);
    QCOMPARE(studio.control->stepsWaiting(), 0);
    studio.endRun();
    // A start that is refused keeps none of them.
    studio.set("accumulation.steps", std::int64_t{0});
    for (int press = 0; press < 3; ++press) studio.press(Qt::Key_F11);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && studio.control->stepsWaiting() == 0, patience_ms);
  }

  void the_lamp_is_a_chip_with_its_sentence() {
    RunningStudio studio("micro_ms=5");
    auto* lamp = studio.find<StateChip>("windowLamp");
    QTRY_COMPARE_WITH_TIMEOUT(lamp->word(), QStringLiteral("not checked"), patience_ms);
    QVERIFY(lamp->isVisibleTo(studio.window.get()));
    auto* text = studio.find<QLabel>("windowLampText");
    QVERIFY(text->wordWrap() && !text->text().isEmpty());
    QVERIFY(studio.find<QLabel>("windowTokens")->wordWrap());
    studio.endRun();
  }

  void an_idle_step_with_a_field_that_does_not_hold_starts_nothing() {
    RunSpec spec = smallSpec();
    spec.schedule.kind = ScheduleKind::linear;
    spec.schedule.min_lr = 2.0 * spec.optimizer.lr;
    OpenStudio studio(spec, "micro_ms=2");
    studio.press(Qt::Key_F10);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::idle, patience_ms);
    QVERIFY(studio.control->run() == nullptr);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestDebugger)

}  // namespace test_debugger
#include "test_debugger.moc"
