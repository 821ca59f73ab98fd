// SPDX-License-Identifier: GPL-3.0-or-later
// The set-up form over the real field table and the real preflight.
#include <QAbstractButton>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QWheelEvent>

#include "studio_fixture.h"
#include "widgets/arithmetic_panel.h"
#include "widgets/field_form.h"
#include "widgets/field_row.h"
#include "widgets/finding_note.h"
#include "widgets/number_edit.h"
#include "widgets/window_preview.h"

using namespace accrue;
using namespace accrue::ui;

class TestForm : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_field_has_a_row_with_label_and_name();
  void typing_edits_the_spec_and_the_arithmetic();
  void a_bad_number_is_said_under_its_field_and_changes_nothing();
  void garbage_is_never_taken_data();
  void garbage_is_never_taken();
  void a_finding_offers_its_fix();
  void the_wheel_edits_nothing_without_focus();
  void fields_without_meaning_are_hidden();
  void other_tools_names_find_fields();
  void the_accumulation_card_needs_no_unfolding();
  void choices_say_what_they_mean_and_who_does_it();
  void what_is_left_to_the_dialect_says_what_that_is();
  void every_name_of_the_four_systems_shows_a_field_data();
  void every_name_of_the_four_systems_shows_a_field();
  void the_preview_shows_the_windows_and_the_tail();
  void a_missing_data_file_is_a_finding_on_its_field();
  void undo_works_in_the_field_just_edited_data();
  void undo_works_in_the_field_just_edited();
  void undo_in_refused_text_is_the_fields_own();
  void refused_text_stays_while_another_field_changes();
  void refused_text_goes_with_its_document();
  void the_arithmetic_never_speaks_for_refused_text();
  void the_arithmetic_says_when_it_is_not_current();
  void warnings_are_seen_in_any_fold();
  void warnings_are_counted_under_the_arithmetic();
  void the_focus_survives_a_check();
  void asking_for_a_field_drops_the_filter_and_opens_the_dock();
};

namespace {

FieldForm* formOf(const StudioFixture& studio) {
  return studio.find<FieldForm>(QStringLiteral("fieldForm"));
}

void pasteInto(QWidget* field, const QString& text) {
  field->setFocus();
  QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
  QGuiApplication::clipboard()->setText(text);
  QTest::keyClick(field, Qt::Key_V, Qt::ControlModifier);
}

void typeInto(QWidget* field, const QString& text) {
  field->setFocus();
  QTest::keyClick(field, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClicks(field, text);
}

}  // namespace

void TestForm::every_field_has_a_row_with_label_and_name() {
  StudioFixture studio;
  for (const SpecField& field : spec_fields()) {
    if (field.key.find('.') == std::string_view::npos) continue;
    const QString key = QString::fromStdString(std::string(field.key));
    FieldRow* row = formOf(studio)->row(key);
    QVERIFY2(row, qPrintable(key));
    QCOMPARE(row->label()->buddy(), row->editorWidget());
    QCOMPARE(row->editorWidget()->objectName(), QStringLiteral("field.%1").arg(key));
    QVERIFY2(!row->editorWidget()->accessibleName().isEmpty(), qPrintable(key));
    QVERIFY2(!row->editorWidget()->toolTip().isEmpty(), qPrintable(key));
  }
}

void TestForm::typing_edits_the_spec_and_the_arithmetic() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* line = studio.find<QLabel>(QStringLiteral("arithmeticLine"));
  const QString before = line->text();
  QVERIFY(before.contains(QStringLiteral("16 samples per update")));
  typeInto(studio.find(QStringLiteral("field.accumulation.steps")), QStringLiteral("16"));
  QCOMPARE(studio.document.spec().accumulation.steps, 16);
  QTRY_VERIFY_WITH_TIMEOUT(line->text().contains(QStringLiteral("64 samples per update")), patience_ms);
  studio.press(Qt::Key_Z, Qt::ControlModifier);
  QTRY_COMPARE_WITH_TIMEOUT(line->text(), before, patience_ms);
}

void TestForm::a_bad_number_is_said_under_its_field_and_changes_nothing() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* note = studio.find<FindingNote>(QStringLiteral("finding.accumulation.steps"));
  QVERIFY(note->isHidden());
  typeInto(studio.find(QStringLiteral("field.accumulation.steps")), QStringLiteral("0"));
  QVERIFY(!note->isHidden());
  QVERIFY(note->text().startsWith(QStringLiteral("Must be")));
  QCOMPARE(studio.document.spec().accumulation.steps, 4);
}

void TestForm::garbage_is_never_taken_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<QString>("text");
  QTest::newRow("letters") << QStringLiteral("accumulation.steps") << QStringLiteral("four");
  QTest::newRow("fraction of a count") << QStringLiteral("accumulation.steps") << QStringLiteral("2.5");
  QTest::newRow("locale comma") << QStringLiteral("optimizer.lr") << QStringLiteral("0,001");
  QTest::newRow("empty") << QStringLiteral("optimizer.lr") << QStringLiteral(" ");
  QTest::newRow("nan") << QStringLiteral("optimizer.lr") << QStringLiteral("nan");
  QTest::newRow("too long") << QStringLiteral("accumulation.steps") << QStringLiteral("99999999999999999999");
}

void TestForm::garbage_is_never_taken() {
  QFETCH(QString, key);
  QFETCH(QString, text);
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  const RunSpec before = studio.document.spec();
  pasteInto(studio.find(QStringLiteral("field.%1").arg(key)), text);
  QVERIFY(studio.document.spec() == before);
  QVERIFY(!studio.find(QStringLiteral("finding.%1").arg(key))->isHidden());
  // What stands in the form is not what would run, so nothing runs.
  studio.press(Qt::Key_F5);
  QCOMPARE(studio.control->state(), RunState::idle);
  QVERIFY(studio.find(QStringLiteral("messageBar"))->isVisible());
}

void TestForm::a_finding_offers_its_fix() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  Finding finding;
  finding.key = "accumulation.steps";
  finding.message = "Too many for this test";
  finding.fix_value = "2";
  formOf(studio)->setFindings({finding});
  auto* note = studio.find<FindingNote>(QStringLiteral("finding.accumulation.steps"));
  QVERIFY(note->text().contains(QStringLiteral("Too many")));
  auto* fix = note->findChild<QPushButton*>();
  QVERIFY(!fix->isHidden());
  fix->click();
  QCOMPARE(studio.document.spec().accumulation.steps, 2);
}

void TestForm::the_wheel_edits_nothing_without_focus() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  const RunSpec before = studio.document.spec();
  studio.find(QStringLiteral("fieldSearch"))->setFocus();
  for (const char* name : {"field.accumulation.steps", "field.model.kind", "field.optimizer.lr"}) {
    QWidget* widget = studio.find(QLatin1String(name));
    QWheelEvent wheel(QPointF(5, 5), widget->mapToGlobal(QPointF(5, 5)), QPoint(0, 0), QPoint(0, 120), Qt::NoButton,
                      Qt::NoModifier, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &wheel);
  }
  QVERIFY(studio.document.spec() == before);
}

void TestForm::fields_without_meaning_are_hidden() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  QVERIFY(studio.find(QStringLiteral("field.model.layers"))->isVisibleTo(studio.window.get()));
  RunSpec linear = smallSpec();
  linear.model.kind = ModelKind::linear;
  studio.openSpec(linear);
  QVERIFY(!studio.find(QStringLiteral("field.model.layers"))->isVisibleTo(studio.window.get()));
}

void TestForm::other_tools_names_find_fields() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  studio.press(Qt::Key_F, Qt::ControlModifier);
  auto* search = studio.find<QLineEdit>(QStringLiteral("fieldSearch"));
  QVERIFY(search->hasFocus());
  QTest::keyClicks(search, QStringLiteral("gradient_accumulation_steps"));
  QVERIFY(studio.find(QStringLiteral("field.accumulation.steps"))->isVisibleTo(studio.window.get()));
  QVERIFY(!studio.find(QStringLiteral("field.optimizer.lr"))->isVisibleTo(studio.window.get()));
  search->clear();
  QVERIFY(studio.find(QStringLiteral("field.optimizer.lr"))->isVisibleTo(studio.window.get()));
}

void TestForm::the_accumulation_card_needs_no_unfolding() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  for (const char* name : {"dialect", "steps", "micro_batch", "tail", "normalizer", "schedule_clock", "reduce_when"}) {
    const QString key = QStringLiteral("accumulation.%1").arg(QLatin1String(name));
    QVERIFY2(formOf(studio)->row(key)->isVisible(), name);
  }
  for (const char* name : {"run_tail", "counter_reset", "boundary_compare", "no_sync_cover", "overflow"}) {
    const QString key = QStringLiteral("accumulation.%1").arg(QLatin1String(name));
    QVERIFY2(!formOf(studio)->row(key)->isVisible(), name);
  }
}

void TestForm::choices_say_what_they_mean_and_who_does_it() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* tail = studio.find<QComboBox>(QStringLiteral("field.accumulation.tail"));
  const auto said = [tail](const char* choice) {
    return tail->itemData(tail->findText(QLatin1String(choice)), Qt::AccessibleTextRole).toString();
  };
  QVERIFY(said("flush").contains(QStringLiteral("step with what came: Accelerate")));
  QVERIFY(said("carry").contains(QStringLiteral("llm-pytorch")));
  QVERIFY(said("drop_stop").contains(QStringLiteral("Colossal-AI's loader")));
  for (const char* key : {"dialect", "tail", "normalizer", "schedule_clock", "reduce_when"}) {
    const SpecField* field = find_field(std::string("accumulation.") + key);
    QVERIFY2(field && field->choice_notes.size() == field->choices.size(), key);
  }
}

void TestForm::what_is_left_to_the_dialect_says_what_that_is() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* tail = studio.find<QComboBox>(QStringLiteral("field.accumulation.tail"));
  QCOMPARE(tail->currentText(), QStringLiteral("as accrue: flush"));
  studio.document.setField(*find_field("accumulation.dialect"), std::string("llm"));
  QCOMPARE(tail->currentText(), QStringLiteral("as llm: carry"));
  auto* clock = studio.find<QComboBox>(QStringLiteral("field.accumulation.schedule_clock"));
  QCOMPARE(clock->currentText(), QStringLiteral("as llm: every_nth_call"));
  studio.document.setField(*find_field("accumulation.tail"), std::string("drop_stop"));
  QCOMPARE(tail->currentText(), QStringLiteral("drop_stop"));
}

void TestForm::every_name_of_the_four_systems_shows_a_field_data() {
  QTest::addColumn<QString>("key");
  const auto row = [](const char* name, const char* key) {
    QTest::newRow(name) << QStringLiteral("accumulation.%1").arg(QLatin1String(key));
  };
  for (const char* name :
       {"accumulation_steps", "accumulate_size", "gradient_accumulation_steps", "num_steps", "accumulative_counts",
        "accumulate_grad_batches", "num_micro_batches", "iter_size", "batch_accumulation"})
    row(name, "steps");
  row("sync_with_dataloader", "sync_with_dataloader");
  row("sync_each_batch", "reduce_when");
  row("split_batches", "split_batches");
  row("step_scheduler_with_optimizer", "schedule_clock");
  row("adjust_scheduler", "adjust_scheduler");
  row("max_iters", "max_iters");
  row("max_counts", "max_iters");
  row("no_sync", "no_sync_cover");
  row("gradient_handlers", "reduce_mechanism");
  row("even_batches", "uneven_ranks");
  row("drop_last", "uneven_ranks");
  QTest::newRow("loss_scaler") << QStringLiteral("optimizer.loss_scale");
  QTest::newRow("grad_scaler") << QStringLiteral("optimizer.loss_scale");
  row("join_uneven_inputs", "uneven_ranks");
  row("GradientAccumulationPlugin", "dialect");
  row("ColossalAIOptimWrapper", "dialect");
  row("GradAccumDataloader", "tail");
  row("GradAccumLrSchedulerByStep", "schedule_clock");
  row("GradAccumGradientHandler", "reduce_mechanism");
  row("initialize_count_status", "counter_reset");
  row("num_items_in_batch", "normalizer");
  row("clip_grad_norm_", "clip_stage");
  row("step_was_skipped", "overflow");
}

void TestForm::every_name_of_the_four_systems_shows_a_field() {
  QFETCH(QString, key);
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  const QString name = QString::fromLatin1(QTest::currentDataTag());
  formOf(studio)->setFilter(name);
  FieldRow* row = formOf(studio)->row(key);
  QVERIFY(row && row->isVisible());
  const bool is_key = key.endsWith(QLatin1Char('.') + name);
  QVERIFY2(is_key || row->editorWidget()->toolTip().contains(name), qPrintable(row->editorWidget()->toolTip()));
}

void TestForm::the_preview_shows_the_windows_and_the_tail() {
  StudioFixture studio;
  studio.show();
  RunSpec spec = smallSpec();
  spec.data.samples = 40;  // 10 batches an epoch on two ranks: 4 + 4 + 2
  studio.openSpec(spec);
  auto* preview = studio.find<WindowPreview>(QStringLiteral("windowPreview"));
  QVERIFY2(preview->text().contains(QStringLiteral("micro-steps 1 to 4 make update 1")), qPrintable(preview->text()));
  QVERIFY2(preview->text().contains(QStringLiteral("2 of 4")), qPrintable(preview->text()));
}

void TestForm::a_missing_data_file_is_a_finding_on_its_field() {
  StudioFixture studio;
  studio.show();
  RunSpec spec = smallSpec();
  spec.data.kind = DataKind::text;
  spec.data.path = "nowhere.txt";
  studio.openSpec(spec);
  QVERIFY(!studio.preflight->result().plan);
  QTRY_VERIFY_WITH_TIMEOUT(!studio.find(QStringLiteral("finding.data.path"))->isHidden(), patience_ms);
  QVERIFY(studio.find(QStringLiteral("showFieldButton"))->isVisibleTo(studio.window.get()));
}

void TestForm::undo_works_in_the_field_just_edited_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<QString>("text");
  QTest::newRow("number") << QStringLiteral("accumulation.steps") << QStringLiteral("16");
  QTest::newRow("text") << QStringLiteral("run.name") << QStringLiteral("abc");
}

void TestForm::undo_works_in_the_field_just_edited() {
  QFETCH(QString, key);
  QFETCH(QString, text);
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
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

void TestForm::undo_in_refused_text_is_the_fields_own() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  studio.document.setField(*find_field("accumulation.micro_batch"), std::int64_t{3});
  auto* field = studio.find(QStringLiteral("field.accumulation.steps"));
  typeInto(field, QStringLiteral("x"));
  QCOMPARE(formOf(studio)->rejectedFields(), QStringList{QStringLiteral("accumulation.steps")});
  studio.press(Qt::Key_Z, Qt::ControlModifier);
  QVERIFY(formOf(studio)->rejectedFields().isEmpty());
  QCOMPARE(studio.document.spec().accumulation.micro_batch, 3);
}

void TestForm::refused_text_stays_while_another_field_changes() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* steps = studio.find<NumberEdit>(QStringLiteral("field.accumulation.steps"));
  typeInto(steps, QStringLiteral("4x"));
  studio.document.setField(*find_field("accumulation.micro_batch"), std::int64_t{3});
  QCOMPARE(steps->text(), QStringLiteral("4x"));
  QVERIFY(!studio.find(QStringLiteral("finding.accumulation.steps"))->isHidden());
  // Its own new value takes its place.
  studio.document.setField(*find_field("accumulation.steps"), std::int64_t{9});
  QCOMPARE(steps->text(), QStringLiteral("9"));
  QVERIFY(formOf(studio)->rejectedFields().isEmpty());
}

void TestForm::refused_text_goes_with_its_document() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* steps = studio.find<NumberEdit>(QStringLiteral("field.accumulation.steps"));
  typeInto(steps, QStringLiteral("4x"));
  studio.openSpec(smallSpec());
  QCOMPARE(steps->text(), QStringLiteral("4"));
  QVERIFY(formOf(studio)->rejectedFields().isEmpty());
}

void TestForm::the_arithmetic_never_speaks_for_refused_text() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* line = studio.find<QLabel>(QStringLiteral("arithmeticLine"));
  QTRY_VERIFY_WITH_TIMEOUT(line->text().contains(QStringLiteral("16 samples per update")), patience_ms);
  auto* steps = studio.find(QStringLiteral("field.accumulation.steps"));
  typeInto(steps, QStringLiteral("x"));
  QCOMPARE(line->text(), QStringLiteral("One field has no valid value"));
  QVERIFY(studio.find(QStringLiteral("windowPreview"))->isHidden());
  studio.find(QStringLiteral("fieldSearch"))->setFocus();
  studio.find<QPushButton>(QStringLiteral("showFieldButton"))->click();
  QVERIFY(steps->hasFocus());
  typeInto(steps, QStringLiteral("4"));
  QVERIFY(line->text().contains(QStringLiteral("16 samples per update")));
}

void TestForm::the_arithmetic_says_when_it_is_not_current() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* checking = studio.find<QLabel>(QStringLiteral("arithmeticChecking"));
  QTRY_VERIFY_WITH_TIMEOUT(!checking->isVisible(), patience_ms);
  studio.document.setField(*find_field("accumulation.steps"), std::int64_t{8});
  QVERIFY(checking->isVisible());
  QTRY_VERIFY_WITH_TIMEOUT(!checking->isVisible(), patience_ms);
  QVERIFY(studio.preflight->isCurrent());
}

void TestForm::warnings_are_seen_in_any_fold() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  QWidget* advanced = studio.find(QStringLiteral("field.launch.stall_timeout_s"));
  QVERIFY(!advanced->isVisibleTo(studio.window.get()));
  Finding warning{.severity = Severity::warning, .key = "launch.stall_timeout_s", .message = "Rather short"};
  formOf(studio)->setFindings({warning});
  QVERIFY(advanced->isVisibleTo(studio.window.get()));
  auto* section = studio.find<QAbstractButton>(QStringLiteral("section.launch"));
  section->click();
  QVERIFY(!section->isChecked());
  QVERIFY(advanced->isVisibleTo(studio.window.get()));
  QVERIFY(studio.find(QStringLiteral("finding.launch.stall_timeout_s"))->isVisibleTo(studio.window.get()));
  QVERIFY(!studio.find(QStringLiteral("field.launch.device"))->isVisibleTo(studio.window.get()));
  formOf(studio)->setFindings({});
  QVERIFY(!advanced->isVisibleTo(studio.window.get()));
}

void TestForm::warnings_are_counted_under_the_arithmetic() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  QVERIFY(studio.preflight->result().plan);
  auto* label = studio.find<QLabel>(QStringLiteral("arithmeticWarnings"));
  Preflight result = studio.preflight->result();
  result.findings = {{.severity = Severity::warning, .key = "launch.device", .message = "Slow here"},
                     {.severity = Severity::note, .key = "launch.device", .message = "By the way"},
                     {.severity = Severity::warning, .key = "data.path", .message = "Old"}};
  auto* panel = studio.window->findChild<ArithmeticPanel*>();
  panel->showResult(result, sketchOf(*result.plan));
  QVERIFY(label->isVisible());
  QCOMPARE(label->text(), QStringLiteral("2 warnings: Slow here"));
  result.findings.clear();
  panel->showResult(result, sketchOf(*result.plan));
  QVERIFY(!label->isVisible());
}

void TestForm::the_focus_survives_a_check() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  QWidget* field = studio.find(QStringLiteral("field.accumulation.steps"));
  field->setFocus();
  formOf(studio)->setEditable(false);
  QVERIFY(!field->hasFocus());
  formOf(studio)->setEditable(true);
  QVERIFY(field->hasFocus());
  // Who goes elsewhere meanwhile stays there.
  QWidget* search = studio.find(QStringLiteral("fieldSearch"));
  formOf(studio)->setEditable(false);
  QWidget* table = studio.find(QStringLiteral("onlyDifferingBox"));
  QWidget* elsewhere = search->hasFocus() ? table : search;
  elsewhere->setFocus();
  formOf(studio)->setEditable(true);
  QVERIFY(elsewhere->hasFocus());
}

void TestForm::asking_for_a_field_drops_the_filter_and_opens_the_dock() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  auto* search = studio.find<QLineEdit>(QStringLiteral("fieldSearch"));
  search->setText(QStringLiteral("checkpoint"));
  QWidget* steps = studio.find(QStringLiteral("field.accumulation.steps"));
  QVERIFY(!steps->isVisibleTo(studio.window.get()));
  QWidget* dock = studio.find(QStringLiteral("setupDock"));
  dock->hide();
  formOf(studio)->focusField(QStringLiteral("accumulation.steps"));
  QVERIFY(dock->isVisible());
  QVERIFY(search->text().isEmpty());
  QVERIFY(steps->isVisible());
  QVERIFY(steps->hasFocus());
}

QTEST_MAIN(TestForm)
#include "test_form.moc"
