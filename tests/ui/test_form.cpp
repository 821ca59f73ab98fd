// SPDX-License-Identifier: GPL-3.0-or-later
// The set-up form over the real field table and the real preflight.
#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QLineEdit>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <map>
#include <set>

#include "accrue/run/megatron/megatron_fields.h"
#include "form_fixture.h"
#include "kit/text.h"
#include "kit/text_scale.h"
#include "setup/arithmetic_panel.h"
#include "setup/field_row.h"
#include "setup/field_section.h"
#include "setup/finding_note.h"
#include "setup/window_preview.h"
#include "support/table.h"
#include "support/test_program.h"
#include "support/zero_weights.h"
#include "widgets/fold_button.h"
#include "widgets/number_edit.h"

namespace test_form {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::current_row;
using accrue::test::Rows;

class TestForm : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_field_has_a_row_with_label_and_name() {
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

  void typing_edits_the_spec_and_the_arithmetic() {
    OpenStudio studio;
    auto* line = studio.find<QLabel>("arithmeticLine");
    const QString before = line->text();
    QVERIFY(before.contains(QStringLiteral("16 samples per update")));
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("16"));
    QCOMPARE(studio.document.spec().accumulation.steps, 16);
    QTRY_VERIFY_WITH_TIMEOUT(line->text().contains(QStringLiteral("64 samples per update")), patience_ms);
    studio.press(Qt::Key_Z, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(line->text(), before, patience_ms);
  }

  void weights_to_start_from_fill_the_form() {
    const QTemporaryDir folder;
    test::write_zero_weights(folder.path().toStdString(),
                             R"({"model_type":"llama","hidden_size":24,"num_hidden_layers":3,"num_attention_heads":4,)"
                             R"("num_key_value_heads":2,"intermediate_size":32,"vocab_size":256})");
    OpenStudio studio(RunSpec{});
    studio.document.setField(*find_field("model.weights"), folder.path().toStdString());
    studio.document.setField(*find_field("model.init"), std::string("checkpoint"));
    FieldRow* layers = formOf(studio)->row(QStringLiteral("model.layers"));
    const auto* number = qobject_cast<QAbstractSpinBox*>(layers->editorWidget());
    QVERIFY(number);
    QTRY_VERIFY_WITH_TIMEOUT(number->text() == QStringLiteral("3") && !number->isEnabled(), patience_ms);
    QVERIFY(layers->isVisible());
    QCOMPARE(studio.document.spec().model.layers, RunSpec().model.layers);  // the file stays short
    // Without the weights the form is as it was.
    studio.document.setField(*find_field("model.init"), std::string("torch"));
    QTRY_VERIFY_WITH_TIMEOUT(number->text() == QString::number(RunSpec().model.layers) && number->isEnabled(),
                             patience_ms);
  }

  void a_spec_that_was_opened_after_a_run_counts_no_edits() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    const auto* edits = studio.find<QLabel>("editsNotRun");
    const auto train = [&] {
      studio.action("runAction")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && !studio.control->isLive(), patience_ms);
    };
    train();
    studio.set("accumulation.steps", std::int64_t{7});
    QCOMPARE(edits->text(), QStringLiteral("1 edit since the last run"));
    RunSpec other = smallSpec(5);
    other.accumulation.micro_batch = 3;
    studio.openSpec(other);
    QVERIFY(edits->isVisible());
    QCOMPARE(edits->text(), QStringLiteral("This spec has not been run since it was opened"));
    studio.openSpec(smallSpec(3));
    QVERIFY(!edits->isVisible());  // what ran
    studio.openSpec(other);
    train();
    QTRY_VERIFY_WITH_TIMEOUT(!edits->isVisible(), patience_ms);
    studio.set("accumulation.steps", std::int64_t{7});
    QCOMPARE(edits->text(), QStringLiteral("1 edit since the last run"));
  }

  void a_field_of_the_plugin_shows_what_it_comes_to() {
    OpenStudio studio;
    FieldForm* form = formOf(studio);
    auto* remark = studio.find<QLabel>("remark.megatron.tp_degree");
    QVERIFY(remark->isHidden());
    form->setFilter(QStringLiteral("tp_degree"));
    QVERIFY(form->row(QStringLiteral("megatron.tp_degree"))->isVisible());
    typeInto(studio.find("field.megatron.tp_degree"), QStringLiteral("2"));
    QCOMPARE(studio.document.spec().megatron.tp_degree, std::optional<std::int64_t>(2));
    QCOMPARE(remark->text(), QStringLiteral("2 (field); parallel.tensor = 2"));
    QCOMPARE(studio.find<QLabel>("remark.megatron.pp_degree")->text(),
             QStringLiteral("1 (default); changes nothing: parallel.pipeline is 1 without it"));
    // Grey is what has no effect.
    const auto role = [form](const char* key) {
      return form->row(QString::fromLatin1(key))->label()->foregroundRole();
    };
    QCOMPARE(role("megatron.pp_degree"), QPalette::PlaceholderText);
    QCOMPARE(role("megatron.tp_degree"), QPalette::WindowText);
    // The key that it sets shows the value and is edited through the field alone.
    QVERIFY(!studio.find("field.parallel.tensor")->isEnabled());
    QCOMPARE(studio.find<QAbstractSpinBox>("field.parallel.tensor")->text(), QStringLiteral("2"));
    QVERIFY(studio.find<QLabel>("remark.parallel.tensor")->text().contains(QStringLiteral("tp_degree")));
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent() && studio.preflight->result().plan, patience_ms);
    QCOMPARE(studio.preflight->result().plan->spec.parallel.tensor, std::int64_t{2});
    studio.press(Qt::Key_Z, Qt::ControlModifier);
    QVERIFY(studio.find("field.parallel.tensor")->isEnabled());
    QVERIFY(remark->text().isEmpty());
  }

  void the_fields_of_the_plugin_stand_in_the_sections_of_their_groups() {
    OpenStudio studio;
    std::map<MegatronGroup, const FieldSection*> sections;
    QCOMPARE(megatron_fields().size(), std::size_t{43});
    for (const MegatronField& field : megatron_fields()) {
      const QString key = QString::fromStdString("megatron." + std::string(field.name));
      const FieldRow* row = formOf(studio)->row(key);
      const FieldSection* own = nullptr;
      for (const auto* section : studio.window->findChildren<FieldSection*>())
        if (std::ranges::count(section->rows(), row) > 0) own = section;
      QVERIFY2(own, qPrintable(key));
      QCOMPARE(sections.emplace(field.group, own).first->second, own);
      const auto* name = own->findChild<FoldButton*>(QString(), Qt::FindDirectChildrenOnly);
      QCOMPARE(name->text(), QStringLiteral("Megatron-LM: %1").arg(fromView(title(field.group))));
    }
    std::set<const FieldSection*> apart;
    for (const auto& [group, section] : sections) apart.insert(section);
    QCOMPARE(apart.size(), sections.size());
  }

  void an_edit_that_other_data_follow_from_reads_them_again() {
    RunSpec spec = smallSpec(10);
    spec.model.kind = ModelKind::t5;
    spec.model.context = 16;
    spec.model.decoder_context = 16;
    OpenStudio studio(spec);
    const auto planned = [&studio] {
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      QVERIFY(studio.preflight->dataFacts());
      const auto facts = scan_data(studio.document.spec(), studio.document.baseDir());
      QVERIFY(facts);
      QCOMPARE(studio.preflight->dataFacts()->fingerprint, facts->fingerprint);
    };
    planned();
    const std::string before = studio.preflight->dataFacts()->fingerprint;
    studio.set("model.decoder_context", std::int64_t{24});
    planned();
    QVERIFY(studio.preflight->dataFacts()->fingerprint != before);
    studio.set("model.kind", std::string("mlp"));
    studio.set("model.outputs", std::int64_t{3});
    studio.set("model.loss", std::string("mse"));
    planned();
    const std::int64_t items = studio.preflight->dataFacts()->tokens_per_sample;
    studio.set("model.loss", std::string("cross_entropy"));
    planned();
    QVERIFY(studio.preflight->dataFacts()->tokens_per_sample != items);
  }

  void differences_say_what_they_mean_for_the_spec() {
    OpenStudio studio;
    studio.action("differencesAction")->trigger();
    auto* sheet = studio.find("differencesSheet");
    QVERIFY(sheet->isVisible());
    auto* horizon = studio.find<QLabel>("effect.U2");
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("8"));
    QTRY_VERIFY_WITH_TIMEOUT(horizon->text().contains(QStringLiteral("as N is 8")), patience_ms);
    auto* padding = studio.find<QAbstractButton>("replay.U15");
    QVERIFY(padding->isEnabled());
    padding->click();
    QCOMPARE(studio.document.spec().model.vocabulary_padding, VocabularyPadding::megatron);
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent() && padding->isChecked(), patience_ms);
    padding->click();
    QCOMPARE(studio.document.spec().model.vocabulary_padding, VocabularyPadding::fixed);
    QVERIFY(!studio.find<QAbstractButton>("replay.narrow_no_sync")->isEnabled());
    // Another optimizer is not a switch: off would not bring back the one that was there.
    QVERIFY(!studio.find<QAbstractButton>("replay.U16"));
  }

  void a_finding_offers_its_fix() {
    OpenStudio studio;
    Finding finding;
    finding.key = "accumulation.steps";
    finding.message = "Too many for this test";
    finding.fix_value = "2";
    formOf(studio)->setFindings({finding});
    auto* note = studio.find<FindingNote>("finding.accumulation.steps");
    QVERIFY(note->text().contains(QStringLiteral("Too many")));
    auto* fix = note->findChild<QPushButton*>();
    QVERIFY(!fix->isHidden());
    fix->setFocus();
    fix->click();
    QCOMPARE(studio.document.spec().accumulation.steps, 2);
    // The button goes; who pressed it is at the field.
    auto* field = studio.find("field.accumulation.steps");
    QVERIFY(QApplication::focusWidget() == field || field->isAncestorOf(QApplication::focusWidget()));
  }

  void a_switch_is_on_or_off_in_every_word_about_it() {
    OpenStudio studio;
    const auto* shuffle = find_field("data.shuffle");
    QVERIFY(shuffle && shuffle->type == FieldType::boolean);
    const bool on = std::get<bool>(shuffle->get(studio.document.spec()));
    Finding finding{.severity = Severity::warning, .key = "data.shuffle", .message = "does nothing"};
    finding.found = on ? "true" : "false";
    finding.expected = on ? "false, or data.samples above 1" : "true";
    finding.fix_value = on ? "false" : "true";
    formOf(studio)->setFindings({finding});
    auto* note = studio.find<FindingNote>("finding.data.shuffle");
    QCOMPARE(note->text(), on ? QStringLiteral("does nothing (found on, expected off, or data.samples above 1)")
                              : QStringLiteral("does nothing (found off, expected on)"));
    auto* fix = note->findChild<QPushButton*>();
    QCOMPARE(fix->text(), on ? QStringLiteral("Turn it off") : QStringLiteral("Turn it on"));
    fix->click();
    QCOMPARE(std::get<bool>(shuffle->get(studio.document.spec())), !on);
    // One that may be left to the dialect, too.
    for (const SpecField& field : spec_fields()) {
      if (field.type != FieldType::boolean || !field.optional) continue;
      const auto* combo = studio.find<QComboBox>(QStringLiteral("field.%1").arg(fromView(field.key)));
      QVERIFY2(combo && combo->findText(QStringLiteral("on")) > 0 && combo->findText(QStringLiteral("off")) > 0,
               std::string(field.key).c_str());
    }
  }

  void the_wheel_edits_nothing_with_the_focus_or_without() {
    OpenStudio studio;
    const RunSpec before = studio.document.spec();
    studio.find("fieldSearch")->setFocus();
    for (const char* name :
         {"field.accumulation.steps", "field.model.kind", "field.optimizer.lr", "field.accumulation.micro_batch"}) {
      QWidget* widget = studio.find(QLatin1String(name));
      if (widget->objectName().endsWith(QStringLiteral("micro_batch"))) widget->setFocus();
      QWheelEvent wheel(QPointF(5, 5), widget->mapToGlobal(QPointF(5, 5)), QPoint(0, 0), QPoint(0, 120), Qt::NoButton,
                        Qt::NoModifier, Qt::NoScrollPhase, false);
      QCoreApplication::sendEvent(widget, &wheel);
    }
    QVERIFY(studio.document.spec() == before);
  }

  void fields_without_meaning_are_hidden() {
    OpenStudio studio;
    QVERIFY(studio.find("field.model.layers")->isVisibleTo(studio.window.get()));
    RunSpec linear = smallSpec();
    linear.model.kind = ModelKind::linear;
    studio.openSpec(linear);
    QVERIFY(!studio.find("field.model.layers")->isVisibleTo(studio.window.get()));
  }

  void other_tools_names_find_fields() {
    OpenStudio studio;
    studio.press(Qt::Key_F, Qt::ControlModifier);
    auto* search = studio.find<QLineEdit>("fieldSearch");
    QVERIFY(search->hasFocus());
    QTest::keyClicks(search, QStringLiteral("gradient_accumulation_steps"));
    QVERIFY(studio.find("field.accumulation.steps")->isVisibleTo(studio.window.get()));
    QVERIFY(studio.find("field.accumulation.steps")->toolTip().contains(QStringLiteral("gradient_accumulation_steps")));
    QVERIFY(!studio.find("field.optimizer.lr")->isVisibleTo(studio.window.get()));
    search->clear();
    QVERIFY(studio.find("field.optimizer.lr")->isVisibleTo(studio.window.get()));
    // Under "advanced", and at the plug-in's own field of the same name.
    QTest::keyClicks(search, QStringLiteral("tp_degree"));
    QVERIFY(studio.find("field.parallel.tensor")->isVisibleTo(studio.window.get()));
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(studio.find("field.parallel.tensor")->hasFocus());
  }

  void the_accumulation_card_needs_no_unfolding() {
    OpenStudio studio;
    for (const char* name :
         {"dialect", "steps", "micro_batch", "tail", "normalizer", "schedule_clock", "reduce_when"}) {
      const QString key = QStringLiteral("accumulation.%1").arg(QLatin1String(name));
      QVERIFY2(formOf(studio)->row(key)->isVisible(), name);
    }
    for (const char* name : {"run_tail", "counter_reset", "boundary_compare", "no_sync_cover", "overflow"}) {
      const QString key = QStringLiteral("accumulation.%1").arg(QLatin1String(name));
      QVERIFY2(!formOf(studio)->row(key)->isVisible(), name);
    }
  }

  void a_lessons_groups_fold_and_the_others_come_back_as_they_were() {
    OpenStudio studio;
    FieldForm* form = formOf(studio);
    const auto title = [form](const char* key) {
      const QWidget* section = form->row(QLatin1String(key))->label()->parentWidget()->parentWidget();
      return section->findChild<FoldButton*>();
    };
    title("model.kind")->click();
    const QStringList before = form->foldState();
    QVERIFY(!form->row(QStringLiteral("model.layers"))->isVisible());
    form->restrictTo({find_field("model.layers"), find_field("accumulation.steps")});
    QVERIFY(form->row(QStringLiteral("model.layers"))->isVisible());
    title("model.kind")->click();
    QVERIFY(!form->row(QStringLiteral("model.layers"))->isVisible());
    QVERIFY(title("model.kind")->isVisible() && form->row(QStringLiteral("accumulation.steps"))->isVisible());
    QCOMPARE(form->foldState(), before);
    form->reveal(QStringLiteral("model.layers"));
    QVERIFY(form->row(QStringLiteral("model.layers"))->isVisible());
    form->restrictTo({});
    QCOMPARE(form->foldState(), before);
    QVERIFY(!form->row(QStringLiteral("model.layers"))->isVisible());
  }

  void choices_say_what_they_mean_and_who_does_it() {
    OpenStudio studio;
    auto* tail = studio.find<QComboBox>("field.accumulation.tail");
    const auto said = [tail](const char* choice) {
      return tail->itemData(tail->findText(QLatin1String(choice)), Qt::AccessibleTextRole).toString();
    };
    QVERIFY(said("flush").contains(QStringLiteral("step with what came: Accelerate")));
    QVERIFY(said("carry").contains(QStringLiteral("llm-pytorch")));
    QVERIFY(said("drop_stop").contains(QStringLiteral("Colossal-AI's loader")));
    for (const char* key : {"accumulation.dialect", "accumulation.tail", "accumulation.normalizer",
                            "accumulation.schedule_clock", "accumulation.reduce_when", "teaching.bug"}) {
      const SpecField* field = find_field(key);
      QVERIFY2(field && field->choice_notes.size() == field->choices.size(), key);
    }
  }

  void what_is_left_to_the_dialect_says_what_that_is() {
    OpenStudio studio;
    auto* tail = studio.find<QComboBox>("field.accumulation.tail");
    QCOMPARE(tail->currentText(), QStringLiteral("as accrue: flush"));
    studio.set("accumulation.dialect", std::string("llm"));
    QCOMPARE(tail->currentText(), QStringLiteral("as llm: carry"));
    auto* clock = studio.find<QComboBox>("field.accumulation.schedule_clock");
    QCOMPARE(clock->currentText(), QStringLiteral("as llm: every_nth_call"));
    studio.set("accumulation.tail", std::string("drop_stop"));
    QCOMPARE(tail->currentText(), QStringLiteral("drop_stop"));
  }

  void the_preview_shows_the_windows_and_the_tail() {
    RunSpec spec = smallSpec();
    spec.data.samples = 40;  // 10 batches an epoch on two ranks: 4 + 4 + 2
    OpenStudio studio(spec);
    auto* preview = studio.find<WindowPreview>("windowPreview");
    QVERIFY2(preview->text().contains(QStringLiteral("micro-steps 1 to 4 make update 1")), qPrintable(preview->text()));
    QVERIFY2(preview->text().contains(QStringLiteral("2 of 4")), qPrintable(preview->text()));
  }

  void the_previews_legend_keeps_off_its_blocks_in_large_text() {
    OpenStudio studio;
    studio.window->resize(1366, 768);
    setTextScale(largestText);
    for (int turn = 0; turn < 5; ++turn) QCoreApplication::processEvents();
    auto* preview = studio.find<WindowPreview>("windowPreview");
    const QImage picture = preview->grab().toImage();
    setTextScale(1.0);
    // Blocks and the ticks under them are 20 pixels high, the legend begins at 24.
    const QRgb ground = picture.pixel(picture.width() - 1, 22);
    for (int y = 21; y < 24; ++y)
      for (int x = 0; x < picture.width(); ++x) QCOMPARE(picture.pixel(x, y), ground);
    QVERIFY(preview->minimumSizeHint().width() <= preview->width());
  }

  void a_missing_data_file_is_a_finding_on_its_field() {
    RunSpec spec = smallSpec();
    spec.data.kind = DataKind::text;
    spec.data.path = "nowhere.txt";
    OpenStudio studio(spec);
    QVERIFY(!studio.preflight->result().plan);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.find("finding.data.path")->isHidden(), patience_ms);
    QVERIFY(studio.find("showFieldButton")->isVisibleTo(studio.window.get()));
  }

  void the_arithmetic_says_when_it_is_not_current() {
    OpenStudio studio;
    auto* checking = studio.find<QLabel>("arithmeticChecking");
    QTRY_VERIFY_WITH_TIMEOUT(!checking->isVisible(), patience_ms);
    studio.set("accumulation.steps", std::int64_t{8});
    QVERIFY(checking->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(!checking->isVisible(), patience_ms);
    QVERIFY(studio.preflight->isCurrent());
  }

  void warnings_are_seen_in_any_fold() {
    OpenStudio studio;
    QWidget* advanced = studio.find("field.launch.stall_timeout_s");
    QVERIFY(!advanced->isVisibleTo(studio.window.get()));
    Finding warning{.severity = Severity::warning, .key = "launch.stall_timeout_s", .message = "Rather short"};
    formOf(studio)->setFindings({warning});
    QVERIFY(advanced->isVisibleTo(studio.window.get()));
    auto* section = studio.find<QAbstractButton>("section.launch");
    section->click();
    QVERIFY(!section->isChecked());
    QVERIFY(advanced->isVisibleTo(studio.window.get()));
    QVERIFY(studio.find("finding.launch.stall_timeout_s")->isVisibleTo(studio.window.get()));
    QVERIFY(!studio.find("field.launch.device")->isVisibleTo(studio.window.get()));
    formOf(studio)->setFindings({});
    QVERIFY(!advanced->isVisibleTo(studio.window.get()));
  }

  void warnings_are_counted_under_the_arithmetic() {
    OpenStudio studio;
    QVERIFY(studio.preflight->result().plan);
    auto* label = studio.find<QLabel>("arithmeticWarnings");
    Preflight result = studio.preflight->result();
    result.findings = {{.severity = Severity::warning, .key = "launch.device", .message = "Slow here"},
                       {.severity = Severity::note, .key = "launch.device", .message = "By the way"},
                       {.severity = Severity::warning, .key = "data.path", .message = "Old"}};
    auto* panel = studio.window->findChild<ArithmeticPanel*>();
    panel->showResult(result, sketchOf(*result.plan));
    QVERIFY(label->isVisible());
    QCOMPARE(label->text(), QStringLiteral("2 warnings: Device: Slow here"));
    result.findings.clear();
    panel->showResult(result, sketchOf(*result.plan));
    QVERIFY(!label->isVisible());
  }

  void the_focus_survives_a_check() {
    OpenStudio studio;
    QWidget* field = studio.find("field.accumulation.steps");
    field->setFocus();
    formOf(studio)->setEditable(false);
    QVERIFY(!field->hasFocus());
    formOf(studio)->setEditable(true);
    QVERIFY(field->hasFocus());
    // A user who has moved to another field in the meantime stays there.
    QWidget* search = studio.find("fieldSearch");
    formOf(studio)->setEditable(false);
    QWidget* table = studio.find("onlyDifferingBox");
    QWidget* elsewhere = search->hasFocus() ? table : search;
    elsewhere->setFocus();
    formOf(studio)->setEditable(true);
    QVERIFY(elsewhere->hasFocus());
  }

  void a_found_number_is_replaced_by_what_is_typed() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    studio.press(Qt::Key_F, Qt::ControlModifier);
    QTest::keyClicks(search, QStringLiteral("gradient_accumulation_steps"));
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(studio.find("field.accumulation.steps")->hasFocus());
    QTest::keyClicks(studio.find("field.accumulation.steps"), QStringLiteral("32"));
    QCOMPARE(studio.document.spec().accumulation.steps, 32);
  }

  void enter_goes_to_the_field_that_fits_best_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("key");
    for (const auto& [text, key] :
         {std::pair("micro-batch", "accumulation.micro_batch"), std::pair("micro_batch", "accumulation.micro_batch"),
          std::pair("Data-parallel ranks", "parallel.data"), std::pair("epochs", "run.epochs")})
      QTest::addRow("%s", text) << QString::fromLatin1(text) << QString::fromLatin1(key);
  }
  void enter_goes_to_the_field_that_fits_best() {
    QFETCH(QString, text);
    QFETCH(QString, key);
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    studio.press(Qt::Key_F, Qt::ControlModifier);
    QTest::keyClicks(search, text);
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY2(studio.find(QStringLiteral("field.%1").arg(key))->hasFocus(),
             qPrintable(QApplication::focusWidget()->objectName()));
  }

  void what_fits_best_is_seen_first() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    const auto* form = formOf(studio);
    search->setText(QStringLiteral("Ranks"));
    QCoreApplication::processEvents();
    const auto top = [&](const char* key) {
      QWidget* editor = form->row(QLatin1String(key))->editorWidget();
      return form->row(QLatin1String(key))->isVisible() ? editor->mapTo(form, QPoint()).y() : -1;
    };
    QTRY_VERIFY(top("parallel.data") > 0 && top("parallel.data") < top("accumulation.uneven_ranks"));
    search->setText(QStringLiteral("parallel ranks"));
    QTRY_COMPARE(top("accumulation.normalizer_scope"), -1);  // only its help has the words
    search->clear();
    QTRY_VERIFY(top("accumulation.steps") >= 0 && top("accumulation.steps") < top("parallel.data"));
  }

  /// As the search itself: the words count, not what stands between them.
  void a_field_says_by_which_name_it_was_found_data() {
    const Rows<QByteArray, QByteArray, QByteArray> row;
    row("as it is written", "gradient_accumulation_steps", "accumulation.steps", "gradient_accumulation_steps");
    row("spaces", "gradient accumulation steps", "accumulation.steps", "gradient_accumulation_steps");
    row("words in another order", "steps accumulation gradient", "accumulation.steps", "gradient_accumulation_steps");
    row("hyphens", "per-device-train-batch-size", "accumulation.micro_batch", "per_device_train_batch_size");
    row("two words of it", "batch size", "accumulation.micro_batch", "--micro-batch-size");
    row("not found", "seed", "accumulation.steps", "");
  }
  void a_field_says_by_which_name_it_was_found() {
    const auto [search, key, name] = current_row<QByteArray, QByteArray, QByteArray>();
    OpenStudio studio;
    studio.find<QLineEdit>("fieldSearch")->setText(QString::fromLatin1(search));
    const auto* found = studio.find<QLabel>(QStringLiteral("foundAs.%1").arg(QLatin1String(key)));
    QCOMPARE(found->isVisible(), !name.isEmpty());
    QVERIFY2(found->text().contains(QString::fromLatin1(name)), qPrintable(found->text()));
  }

  void the_search_stays_until_escape() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    studio.press(Qt::Key_F, Qt::ControlModifier);
    QTest::keyClicks(search, QStringLiteral("seed"));
    QTest::keyClick(search, Qt::Key_Escape);
    QVERIFY(search->text().isEmpty());
    QTest::keyClicks(search, QStringLiteral("seed"));
    QTest::keyClick(search, Qt::Key_Return);
    QVERIFY(!search->text().isEmpty());  // the field that was found is edited among its like
    // Tab, too, or a click elsewhere, leaves what was found as it is.
    studio.find("onlyDifferingBox")->setFocus();
    QCOMPARE(search->text(), QStringLiteral("seed"));
    QVERIFY(!formOf(studio)->row(QStringLiteral("accumulation.steps"))->isVisible());
    search->setFocus();
    QTest::keyClick(search, Qt::Key_Tab);
    QVERIFY(!search->hasFocus());
    QCOMPARE(search->text(), QStringLiteral("seed"));
    search->setFocus();
    QTest::keyClick(search, Qt::Key_Escape);
    QVERIFY(search->text().isEmpty());
    QVERIFY(formOf(studio)->row(QStringLiteral("accumulation.steps"))->isVisible());
  }

  void down_goes_from_the_search_to_the_first_match() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    studio.press(Qt::Key_F, Qt::ControlModifier);
    QTest::keyClicks(search, QStringLiteral("micro-batch"));
    QTest::keyClick(search, Qt::Key_Down);
    QVERIFY(studio.find("field.accumulation.micro_batch")->hasFocus());
    QCOMPARE(search->text(), QStringLiteral("micro-batch"));
  }

  void the_search_ends_with_its_document() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    search->setText(QStringLiteral("seed"));
    QVERIFY(!formOf(studio)->row(QStringLiteral("accumulation.steps"))->isVisible());
    studio.openSpec(smallSpec(7));
    QVERIFY(search->text().isEmpty());
    QVERIFY(formOf(studio)->row(QStringLiteral("accumulation.steps"))->isVisible());
  }

  void whole_numbers_have_whole_limits() {
    OpenStudio studio;
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("0"));
    QCOMPARE(studio.find<FindingNote>("finding.accumulation.steps")->text(),
             QStringLiteral("Must be from 1 to 1048576"));
    QCOMPARE(studio.find<QLabel>("arithmeticLine")->text(), QStringLiteral("Accumulation steps has no valid value"));
  }

  void a_refusal_goes_with_its_cause() {
    OpenStudio studio;
    const auto refused = [&studio] {
      return studio.find("messageBar")->isVisible() &&
             studio.find<QLabel>("messageText")->text().startsWith(QStringLiteral("The set-up cannot be run"));
    };
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("0"));
    studio.press(Qt::Key_F5);
    QVERIFY(refused());
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("4"));
    QVERIFY(!refused());
    typeInto(studio.find("field.accumulation.steps"), QStringLiteral("none"));
    studio.press(Qt::Key_F5);
    QVERIFY(refused());
    studio.set("accumulation.micro_batch", std::int64_t{3});  // the set-up is another one
    QVERIFY(!refused());
  }

  void errors_name_their_subject() {
    RunSpec spec = smallSpec();
    spec.data.kind = DataKind::text;
    spec.data.path = "nowhere.txt";
    OpenStudio studio(spec);
    auto* line = studio.find<QLabel>("arithmeticLine");
    QTRY_VERIFY_WITH_TIMEOUT(line->text().startsWith(QStringLiteral("File: ")), patience_ms);
  }

  void a_list_of_datasets_needs_no_brackets() {
    RunSpec spec = smallSpec();
    spec.data.kind = DataKind::indexed;
    OpenStudio studio(spec);
    typeInto(studio.find("field.data.paths"), QStringLiteral("/data/a, /data/b"));
    QCOMPARE(studio.document.spec().data.paths, (std::vector<std::string>{"/data/a", "/data/b"}));
    typeInto(studio.find("field.data.paths"), QStringLiteral("[\"/data/c\"]"));
    QCOMPARE(studio.document.spec().data.paths, (std::vector<std::string>{"/data/c"}));
  }

  void edits_during_a_run_are_marked_until_it_ends() {
    RunningStudio studio("micro_ms=5");
    auto* mark = studio.find<QLabel>("waiting.accumulation.steps");
    auto* section = studio.find<QAbstractButton>("section.accumulation");
    QVERIFY(mark->isHidden());
    studio.set("accumulation.steps", std::int64_t{16});
    QVERIFY(!mark->isHidden());
    QVERIFY(mark->text().contains(QStringLiteral("for the next run; this one has 4")));
    QVERIFY(section->accessibleDescription().contains(QStringLiteral("1 for the next run")));
    QCOMPARE(section->toolTip(), section->accessibleDescription());  // beside a command there is room for its number
    QVERIFY(section->width() >= section->sizeHint().width());
    QCOMPARE(studio.action("runAction")->iconText(), QStringLiteral("Run (1)"));
    QVERIFY(studio.action("runAction")->toolTip().startsWith(QStringLiteral("1 edit waits")));
    studio.document.undoStack()->undo();
    QVERIFY(mark->isHidden());
    studio.set("accumulation.steps", std::int64_t{8});
    studio.endRun();
    QVERIFY(mark->isHidden());
    QCOMPARE(studio.action("runAction")->iconText(), QStringLiteral("Run"));
  }

  void a_field_under_the_pointer_or_with_the_focus_stays_where_it_is_data() {
    const Rows<bool> row;
    row("pointer", true);
    row("focus", false);
  }

  void a_field_under_the_pointer_or_with_the_focus_stays_where_it_is() {
    const auto [pointer] = current_row<bool>();
    RunningStudio studio("micro_ms=5");
    studio.window->resize(1366, 768);
    QWidget* steps = studio.find("field.accumulation.steps");
    QWidget* kept = studio.find("field.model.kind");
    const auto place = [kept] { return kept->mapToGlobal(kept->rect().center()); };
    QCoreApplication::processEvents();
    const QPoint before = place();
    QCursor::setPos(pointer ? before : QPoint());
    (pointer ? steps : kept)->setFocus();
    if (pointer)
      typeInto(steps, QStringLiteral("8x"));
    else
      studio.set("accumulation.steps", std::int64_t{8});
    QTRY_VERIFY(studio.find(pointer ? "finding.accumulation.steps" : "waiting.accumulation.steps")->isVisible());
    QTRY_VERIFY(formOf(studio)->verticalScrollBar()->value() > 0);
    QTRY_COMPARE(place(), before);
    QVERIFY(!steps->visibleRegion().isEmpty());
    studio.endRun();
  }

  void asking_for_a_field_drops_the_filter_and_opens_the_dock() {
    OpenStudio studio;
    auto* search = studio.find<QLineEdit>("fieldSearch");
    search->setText(QStringLiteral("checkpoint"));
    QWidget* steps = studio.find("field.accumulation.steps");
    QVERIFY(!steps->isVisibleTo(studio.window.get()));
    QWidget* dock = studio.find("setupDock");
    dock->hide();
    formOf(studio)->focusField(QStringLiteral("accumulation.steps"));
    QVERIFY(dock->isVisible());
    QVERIFY(search->text().isEmpty());
    QVERIFY(steps->isVisible());
    QVERIFY(steps->hasFocus());
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestForm)

}  // namespace test_form
#include "test_form.moc"
