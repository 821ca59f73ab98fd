// SPDX-License-Identifier: GPL-3.0-or-later
// From the start page to two runs compared on samples, by keyboard alone.
#include <QComboBox>
#include <QLineEdit>

#include "plots/plot_area.h"
#include "studio_fixture.h"
#include "support/test_program.h"

namespace test_golden_path {

using namespace accrue;
using namespace accrue::ui;

namespace {

void type(const QString& text) {
  QTest::keyClicks(QApplication::focusWidget(), text);
}

void tab() {
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
}

}  // namespace

class TestGoldenPath : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_second_card_trains_the_demo() {
    StudioFixture studio("micro_ms=5");
    studio.show();
    QTRY_VERIFY_WITH_TIMEOUT(QApplication::focusWidget(), patience_ms);
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_2);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().update >= 2, patience_ms);
    QVERIFY(studio.window->plots()->isVisible());
    QCOMPARE(studio.window->plots()->runs().size(), 1);
    QCOMPARE(studio.document.displayName(), QStringLiteral("Demo"));
    studio.endRun();
  }

  void two_runs_compared_by_keyboard_alone() {
    OpenStudio studio(smallSpec(12), "micro_ms=1");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    RunSeries* first = studio.control->run();

    studio.press(Qt::Key_F, Qt::ControlModifier);
    QCOMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("fieldSearch"));
    type(QStringLiteral("gradient_accumulation_steps"));
    for (int i = 0; i < 12 && QApplication::focusWidget()->objectName() != QStringLiteral("field.accumulation.steps");
         ++i)
      tab();
    QCOMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("field.accumulation.steps"));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_A, Qt::ControlModifier);
    type(QStringLiteral("16"));
    QCOMPARE(studio.document.spec().accumulation.steps, 16);

    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() != first, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    RunSeries* second = studio.control->run();
    QCOMPARE(second->spec()->accumulation.steps, 16);
    QCOMPARE(second->last().update, 12);
    // The field that had the focus before the run has it again afterwards.
    QVERIFY(QApplication::focusWidget());
    QCOMPARE(QApplication::focusWidget()->objectName(), QStringLiteral("field.accumulation.steps"));

    PlotArea* plots = studio.window->plots();
    QVERIFY(plots->runs().contains(first));
    QVERIFY(plots->runs().contains(second));
    QCOMPARE(plots->focusedRun(), second);
    QVERIFY(first->colorIndex() != second->colorIndex());

    // The clock: in the plot the digit 3, in the menu and the combo the same.
    for (int i = 0; i < 12 && !plots->isAncestorOf(QApplication::focusWidget()); ++i) studio.press(Qt::Key_F6);
    QVERIFY(plots->isAncestorOf(QApplication::focusWidget()));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_3);
    QCOMPARE(plots->clock(), Clock::sample);
    auto* combo = studio.find<QComboBox>("clockCombo");
    QCOMPARE(combo->currentData().toInt(), static_cast<int>(Clock::sample));
    QCOMPARE(first->latest(Clock::sample) * 4, second->latest(Clock::sample));
    QTest::keyClick(combo, Qt::Key_Up);
    QTest::keyClick(combo, Qt::Key_Return);
    QCOMPARE(plots->clock(), Clock::update);
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestGoldenPath)

}  // namespace test_golden_path
#include "test_golden_path.moc"
