// SPDX-License-Identifier: GPL-3.0-or-later
// Typing into the set-up form: what is refused, what one step of undo is, and what Escape takes back.
#include <QAbstractItemView>
#include <QClipboard>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QPushButton>
#include <QToolBar>

#include "form_fixture.h"
#include "plots/plot_area.h"
#include "setup/finding_note.h"
#include "support/table.h"
#include "support/test_program.h"
#include "widgets/number_edit.h"

namespace test_typing {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::current_row;
using accrue::test::Rows;

namespace {

void pasteInto(QWidget* field, const QString& text) {
  field->setFocus();
  QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
  QGuiApplication::clipboard()->setText(text);
  QTest::keyClick(field, Qt::Key_V, Qt::ControlModifier);
}

/// Edits of a field that come later are no longer one step for being close in time.
void outlastMerging() {
  QElapsedTimer since;
  since.start();
  QTRY_VERIFY_WITH_TIMEOUT(since.hasExpired(SpecDocument::merge_ms + 1), patience_ms);
}

}  // namespace

class TestTyping : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_bad_number_is_said_under_its_field_and_changes_nothing() {
    OpenStudio studio;
    auto* note = studio.find<FindingNote>("finding.accumulation.steps");
    QVERIFY(note->isHidden());
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("0"));
    QVERIFY(!note->isHidden());
    QVERIFY(note->text().startsWith(QStringLiteral("Must be")));
    QCOMPARE(studio.document.spec().accumulation.steps, 4);
  }

  void letters_choose_no_axis_after_run_was_pressed() {
    OpenStudio studio(smallSpec(100'000));
    QWidget* run = nullptr;
    for (const QToolBar* bar : studio.window->findChildren<QToolBar*>())
      if (QWidget* button = bar->widgetForAction(studio.action("runAction"))) run = button;
    QVERIFY(run);
    run->setFocus(Qt::TabFocusReason);
    QTest::keyClick(run, Qt::Key_Space);
    QTRY_VERIFY_WITH_TIMEOUT(!run->isEnabled() && studio.control->isLive(), patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.find("plotArea")->isAncestorOf(QApplication::focusWidget()), patience_ms);
    const Clock clock = studio.window->plots()->clock();
    for (const Qt::Key key : {Qt::Key_S, Qt::Key_W, Qt::Key_E}) studio.press(key);
    QCOMPARE(studio.window->plots()->clock(), clock);
    QVERIFY(studio.window->plots()->smoothing() > 0.0);  // S is the plots'
    studio.endRun();
  }

  void an_axis_chosen_with_the_mouse_leaves_the_keys_to_the_plots() {
    RunningStudio studio("micro_ms=2");
    studio.window->plots()->setFocus();
    const QWidget* before = QApplication::focusWidget();
    auto* clocks = studio.find<QComboBox>("clockCombo");
    QTest::mouseClick(clocks, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(clocks->view()->isVisible(), patience_ms);
    QTest::keyClick(clocks->view(), Qt::Key_Down);
    QTest::keyClick(clocks->view(), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(!clocks->view()->isVisible(), patience_ms);
    QCOMPARE(QApplication::focusWidget(), before);
    studio.endRun();
  }

  void garbage_is_never_taken_data() {
    const Rows<QString, QString> row;
    row("letters", QStringLiteral("accumulation.steps"), QStringLiteral("four"));
    row("fraction of a count", QStringLiteral("accumulation.steps"), QStringLiteral("2.5"));
    row("locale comma", QStringLiteral("optimizer.lr"), QStringLiteral("0,001"));
    row("empty", QStringLiteral("optimizer.lr"), QStringLiteral(" "));
    row("nan", QStringLiteral("optimizer.lr"), QStringLiteral("nan"));
    row("too long", QStringLiteral("accumulation.steps"), QStringLiteral("99999999999999999999"));
  }

  void garbage_is_never_taken() {
    const auto [key, text] = current_row<QString, QString>();
    OpenStudio studio;
    const RunSpec before = studio.document.spec();
    pasteInto(studio.find(QStringLiteral("field.%1").arg(key)), text);
    QVERIFY(studio.document.spec() == before);
    QVERIFY(!studio.find(QStringLiteral("finding.%1").arg(key))->isHidden());
    // The form shows something else than would run, so nothing runs.
    studio.press(Qt::Key_F5);
    QCOMPARE(studio.control->state(), RunState::idle);
    QVERIFY(studio.find("messageBar")->isVisible());
  }

  void undo_works_in_the_field_just_edited_data() {
    const Rows<QString, QString> row;
    row("number", QStringLiteral("accumulation.steps"), QStringLiteral("16"));
    row("text", QStringLiteral("run.name"), QStringLiteral("abc"));
  }

  void undo_works_in_the_field_just_edited() {
    const auto [key, text] = current_row<QString, QString>();
    OpenStudio studio;
    formOf(studio)->focusField(key);
    QWidget* field = studio.find(QStringLiteral("field.%1").arg(key));
    QVERIFY(field->hasFocus());
    const RunSpec before = studio.document.spec();
    typeInto(field, text);
    QVERIFY(studio.document.spec() != before);
    studio.press(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(studio.document.spec() == before);
    QVERIFY(studio.document.undoStack()->canRedo());
    studio.press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QVERIFY(studio.document.spec() != before);
  }

  void undo_takes_back_a_text_that_is_no_value_before_any_edit() {
    OpenStudio studio;
    QWidget* steps = studio.find("field.accumulation.steps");
    QAction* undo = studio.window->findChild<QAction*>(QStringLiteral("undoAction"));
    typeInto(steps, QStringLiteral("0"));
    QTest::keyClick(steps, Qt::Key_Tab);
    QVERIFY(undo->isEnabled());
    undo->trigger();
    QCOMPARE(studio.document.spec().accumulation.steps, 4);
    QVERIFY(!undo->isEnabled());
    typeInto(steps, QStringLiteral("8"));
    QTest::keyClick(steps, Qt::Key_Tab);
    typeInto(steps, QStringLiteral("0"));
    QTest::keyClick(steps, Qt::Key_Tab);
    undo->trigger();
    QVERIFY(studio.find<FindingNote>("finding.accumulation.steps")->isHidden());
    QCOMPARE(studio.document.spec().accumulation.steps, 8);
    undo->trigger();
    QCOMPARE(studio.document.spec().accumulation.steps, 4);
  }

  /// "900000" is a value, and "90000000000000" is none: the spec never keeps the beginning of a text that is refused.
  void the_beginning_of_a_refused_number_is_no_value() {
    OpenStudio studio;
    auto* steps = studio.find<NumberEdit>("field.accumulation.steps");
    QUndoStack* undo = studio.document.undoStack();
    for (const char* text : {"90000000000000", "16x", "16 16x"}) {
      typeInto(steps, QLatin1String(text));
      QCOMPARE(steps->text(), QLatin1String(text));
      QCOMPARE(studio.document.spec().accumulation.steps, 4);
      QVERIFY(!undo->canUndo() && !undo->canRedo());
      QTest::keyClick(steps, Qt::Key_Tab);
      QCOMPARE(steps->text(), QLatin1String(text));
      studio.action("undoAction")->trigger();
      QCOMPARE(steps->text(), QStringLiteral("4"));
      QVERIFY(formOf(studio)->rejectedFields().isEmpty());
    }
    // Earlier typing is a separate undo step.
    typeInto(steps, QStringLiteral("8"));
    QTest::keyClick(steps, Qt::Key_Tab);
    outlastMerging();
    typeInto(steps, QStringLiteral("16x"));
    QCOMPARE(studio.document.spec().accumulation.steps, 8);
    QCOMPARE(undo->count(), 1);
    // And a text that becomes a value after all is one step.
    QTest::keyClick(steps, Qt::Key_Backspace);
    QCOMPARE(studio.document.spec().accumulation.steps, 16);
    QCOMPARE(undo->count(), 2);
  }

  void a_number_typed_slowly_is_one_step_of_undo() {
    OpenStudio studio;
    QUndoStack* undo = studio.document.undoStack();
    const double before = studio.document.spec().optimizer.lr;
    auto* field = studio.find<NumberEdit>("field.optimizer.lr");
    field->setFocus();
    QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
    for (const char* letter : {"3", "e", "-", "4"}) {
      QTest::keyClicks(field, QLatin1String(letter));
      outlastMerging();
    }
    QCOMPARE(studio.document.spec().optimizer.lr, 3e-4);
    QCOMPARE(undo->count(), 1);
    // Steps are edits of their own, and so is what follows Enter.
    QTest::keyClick(field, Qt::Key_Up);
    outlastMerging();
    QTest::keyClick(field, Qt::Key_Up);
    outlastMerging();
    QCOMPARE(undo->count(), 3);
    QTest::keyClick(field, Qt::Key_Return);
    QTest::keyClicks(field, QStringLiteral("1"));
    QCOMPARE(undo->count(), 4);
    while (undo->canUndo()) undo->undo();
    QCOMPARE(studio.document.spec().optimizer.lr, before);
  }

  void escape_takes_back_what_is_typed_and_leaves_the_form() {
    RunningStudio studio("micro_ms=5");
    auto* steps = studio.find<NumberEdit>("field.accumulation.steps");
    for (const char* text : {"16", "16x", "x"}) {
      typeInto(steps, QLatin1String(text));
      QTest::keyClick(steps, Qt::Key_Escape);
      QCOMPARE(studio.document.spec().accumulation.steps, 4);
      QCOMPARE(steps->text(), QStringLiteral("4"));
      QVERIFY(formOf(studio)->rejectedFields().isEmpty());
      QVERIFY(!formOf(studio)->isAncestorOf(QApplication::focusWidget()));
    }
    // A value confirmed by Enter stays.
    typeInto(steps, QStringLiteral("16"));
    QTest::keyClick(steps, Qt::Key_Return);
    QTest::keyClick(steps, Qt::Key_Escape);
    QCOMPARE(studio.document.spec().accumulation.steps, 16);
    studio.press(Qt::Key_Space);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    studio.endRun();
  }

  void undo_in_a_field_takes_back_its_refused_text_alone() {
    OpenStudio studio;
    studio.set("accumulation.micro_batch", std::int64_t{3});
    auto* field = studio.find<NumberEdit>("field.accumulation.steps");
    for (const bool confirmed : {false, true}) {
      typeInto(field, QStringLiteral("99999999999999"));
      if (confirmed) QTest::keyClick(field, Qt::Key_Return);
      QCOMPARE(formOf(studio)->rejectedFields(), QStringList{QStringLiteral("accumulation.steps")});
      studio.press(Qt::Key_Z, Qt::ControlModifier);
      QVERIFY(formOf(studio)->rejectedFields().isEmpty());
      QCOMPARE(field->text(), QStringLiteral("4"));
      QCOMPARE(studio.document.spec().accumulation.micro_batch, 3);
    }
  }

  void a_number_beyond_all_bounds_is_called_that() {
    OpenStudio studio;
    for (const char* key : {"field.accumulation.steps", "field.optimizer.lr"}) {
      auto* number = studio.find<NumberEdit>(key);
      typeInto(number, QStringLiteral("1e999"));
      QCOMPARE(number->problem(), QStringLiteral("\"1e999\" is too large"));
      typeInto(number, QStringLiteral("1e"));
      QVERIFY2(number->problem().contains(QStringLiteral("number")), qPrintable(number->problem()));
    }
  }

  void a_whole_number_out_of_range_is_told_the_range() {
    OpenStudio studio;
    auto* number = studio.find<NumberEdit>("field.accumulation.steps");
    for (const char* text : {"1000000000", "99999999999999999999", "1e18"}) {
      typeInto(number, QLatin1String(text));
      QCOMPARE(number->problem(), QStringLiteral("Must be from 1 to 1048576"));
    }
    typeInto(number, QStringLiteral("2.5"));
    QCOMPARE(number->problem(), QStringLiteral("\"2.5\" is not a whole number"));
  }

  void refused_text_stays_while_another_field_changes() {
    OpenStudio studio;
    auto* steps = studio.find<NumberEdit>("field.accumulation.steps");
    typeInto(steps, QStringLiteral("4x"));
    studio.set("accumulation.micro_batch", std::int64_t{3});
    QCOMPARE(steps->text(), QStringLiteral("4x"));
    QVERIFY(!studio.find("finding.accumulation.steps")->isHidden());
    // Its own new value takes its place.
    studio.set("accumulation.steps", std::int64_t{9});
    QCOMPARE(steps->text(), QStringLiteral("9"));
    QVERIFY(formOf(studio)->rejectedFields().isEmpty());
  }

  void refused_text_goes_with_its_document() {
    OpenStudio studio;
    auto* steps = studio.find<NumberEdit>("field.accumulation.steps");
    typeInto(steps, QStringLiteral("4x"));
    studio.openSpec(smallSpec());
    QCOMPARE(steps->text(), QStringLiteral("4"));
    QVERIFY(formOf(studio)->rejectedFields().isEmpty());
  }

  void the_arithmetic_never_speaks_for_refused_text() {
    OpenStudio studio;
    auto* line = studio.find<QLabel>("arithmeticLine");
    QTRY_VERIFY_WITH_TIMEOUT(line->text().contains(QStringLiteral("16 samples per update")), patience_ms);
    auto* steps = studio.find("field.accumulation.steps");
    typeInto(steps, QStringLiteral("x"));
    QCOMPARE(line->text(), QStringLiteral("Accumulation steps has no valid value"));
    QVERIFY(studio.find("windowPreview")->isHidden());
    studio.find("fieldSearch")->setFocus();
    studio.find<QPushButton>("showFieldButton")->click();
    QVERIFY(steps->hasFocus());
    typeInto(steps, QStringLiteral("4"));
    QVERIFY(line->text().contains(QStringLiteral("16 samples per update")));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestTyping)

}  // namespace test_typing
#include "test_typing.moc"
