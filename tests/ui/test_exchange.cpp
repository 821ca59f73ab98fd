// SPDX-License-Identifier: GPL-3.0-or-later
// Export to code and of weights, traces and TensorBoard's files in and out, in a whole window over fake ranks.
#include <QAction>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTemporaryDir>
#include <QToolButton>

#include "accrue/run/cost/shard_layout.h"
#include "accrue/run/export/code_export.h"
#include "accrue/run/record/tensorboard_file.h"
#include "exchange/figure_dialog.h"
#include "runs/run_notebook.h"
#include "runs/run_table_model.h"
#include "runs/runs_panel.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "support/zero_weights.h"
#include "widgets/message_bar.h"

namespace test_exchange {

using namespace accrue;
using namespace accrue::ui;

namespace {

QString read(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

/// Three losses under a tag.
void writeLog(const QString& folder, const std::string& tag) {
  auto file = TensorboardFile::create(folder.toStdString(), 1000.0).value();
  for (int step = 1; step <= 3; ++step) file.add(1000.0 + step, step, {{tag, 4.0 - step}, {"speed", 1.0}}).value();
}

}  // namespace

class TestExchange : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_cannot_be_carried_over_is_shown_before_it_is_saved() {
    RunSpec spec = smallSpec(20);
    spec.evaluate.every_updates = 5;
    OpenStudio studio(spec);
    studio.action("exportCodeAction")->trigger();
    auto* sheet = studio.find("codeExportSheet");
    QVERIFY(sheet && sheet->isVisible());
    auto* missing = sheet->findChild<QListWidget*>(QStringLiteral("exportMissing"));
    auto* text = sheet->findChild<QPlainTextEdit*>(QStringLiteral("exportText"));
    auto* save = sheet->findChild<QPushButton*>(QStringLiteral("exportSave"));
    QCOMPARE(missing->count(), 1);
    QVERIFY(missing->item(0)->text().startsWith(QStringLiteral("evaluate.every_updates = 5")));
    QVERIFY(text->toPlainText().contains(QStringLiteral("\nN = 4 ")));
    // It follows the edits.
    studio.set("evaluate.every_updates", std::int64_t{0});
    studio.set("accumulation.steps", std::int64_t{7});
    QTRY_VERIFY_WITH_TIMEOUT(text->toPlainText().contains(QStringLiteral("\nN = 7 ")), patience_ms);
    QCOMPARE(missing->count(), 0);
    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("train.py"));
    save->click();
    QCOMPARE(read(studio.dialogs.save_answer), text->toPlainText());
    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("torch.py"));
    save->click();
    QVERIFY(!QFile::exists(studio.dialogs.save_answer));
    QVERIFY(
        sheet->findChild<QLabel*>(QStringLiteral("exportVerdict"))->text().contains(QStringLiteral("another name")));
    // A setting that a tool does not support is refused by its key.
    studio.set("schedule.clock", std::string("samples"));
    QTRY_VERIFY_WITH_TIMEOUT(!save->isEnabled(), patience_ms);
    QVERIFY(
        sheet->findChild<QLabel*>(QStringLiteral("exportVerdict"))->text().contains(QStringLiteral("schedule.clock")));
    auto* target = sheet->findChild<QComboBox*>(QStringLiteral("exportTarget"));
    target->setCurrentIndex(static_cast<int>(CodeTarget::deepspeed));
    QVERIFY(save->isEnabled());
    QVERIFY(missing->count() > 0);
  }

  void code_is_exported_of_the_run_or_of_the_form_whichever_was_touched_last() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::finished, patience_ms);
    studio.action("exportCodeAction")->trigger();
    auto* sheet = studio.find<QDialog>("codeExportSheet");
    auto* source = sheet->findChild<QComboBox*>(QStringLiteral("exportSource"));
    auto* text = sheet->findChild<QPlainTextEdit*>(QStringLiteral("exportText"));
    QCOMPARE(source->currentText(), QStringLiteral("The run \u201C%1\u201D").arg(studio.control->run()->name()));
    // The run's own set-up stays selected while the form is edited; the form is the other choice.
    studio.set("accumulation.steps", std::int64_t{7});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    QVERIFY(text->toPlainText().contains(QStringLiteral("\nN = 4 ")));
    source->setCurrentIndex(0);
    QCOMPARE(source->currentText(), QStringLiteral("The set-up in the form"));
    QVERIFY(text->toPlainText().contains(QStringLiteral("\nN = 7 ")));
    // The form was edited after the run got the focus.
    source->setCurrentIndex(1);
    sheet->close();
    studio.action("exportCodeAction")->trigger();
    QCOMPARE(source->currentIndex(), 0);
    sheet->close();
    studio.action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.library->table()->rowCount() == 2 && !studio.control->isLive(), patience_ms);
    studio.action("exportCodeAction")->trigger();
    QCOMPARE(source->currentIndex(), 1);
    QVERIFY(text->toPlainText().contains(QStringLiteral("\nN = 7 ")));
    // It follows the focus.
    auto* runs = studio.find<RunsPanel>("runsPanel");
    RunSeries* const newer = runs->currentRun();
    for (RunSeries* run : studio.library->table()->runs())
      if (run != newer) runs->showAlso(run);
    QVERIFY(runs->currentRun() != newer);
    QCOMPARE(source->currentText(), QStringLiteral("The run \u201C%1\u201D").arg(runs->currentRun()->name()));
    QVERIFY(text->toPlainText().contains(QStringLiteral("\nN = 4 ")));
  }

  void a_runs_trace_and_scalars_are_saved() {
    OpenStudio studio(smallSpec(3));
    QVERIFY(!studio.action("exportTraceAction")->isEnabled());
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::finished, patience_ms);
    QVERIFY(studio.action("exportTraceAction")->isEnabled());
    auto* bar = studio.window->findChild<MessageBar*>();
    studio.dialogs.save_answer = studio.home->filePath(QStringLiteral("trace.json"));
    studio.action("exportTraceAction")->trigger();
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("Perfetto")), qPrintable(bar->text()), patience_ms);
    const auto trace = QJsonDocument::fromJson(read(studio.dialogs.save_answer).toUtf8());
    QVERIFY(trace[QStringLiteral("traceEvents")].toArray().size() > 10);
    studio.dialogs.open_answer = studio.home->filePath(QStringLiteral("board"));
    studio.action("exportScalarsAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("tfevents")), patience_ms);
    studio.action("exportScalarsAction")->trigger();  // a second file there would be the same run to TensorBoard
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("another folder")), patience_ms);
  }

  void a_finished_runs_weights_are_saved_for_hugging_face() {
    OpenStudio studio(smallSpec(3));
    QAction* action = studio.action("exportWeightsAction");
    const auto refuses = [&](const char* words) {
      return !action->isEnabled() && action->toolTip().contains(QLatin1String(words));
    };
    QVERIFY2(refuses("Select a run"), qPrintable(action->toolTip()));
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::finished, patience_ms);
    QTRY_VERIFY2_WITH_TIMEOUT(refuses("has no final weights"), qPrintable(action->toolTip()), patience_ms);
    // The fake ranks write none.
    const std::filesystem::path run = studio.control->run()->folder().toStdString();
    accrue::test::write_zeros(run / "final/model.safetensors", "",
                              parameter_shapes(studio.control->run()->spec()->model));
    studio.library->refresh();
    QTRY_VERIFY_WITH_TIMEOUT(action->isEnabled(), patience_ms);
    QVERIFY(action->toolTip().contains(QStringLiteral("final weights as a folder")));
    auto* bar = studio.window->findChild<MessageBar*>();
    studio.dialogs.open_answer = studio.home->filePath(QStringLiteral("theirs"));
    action->trigger();
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("no tokenizer is known")), qPrintable(bar->text()),
                              patience_ms);
    QVERIFY(QFile::exists(studio.dialogs.open_answer + QStringLiteral("/model.safetensors")));
    action->trigger();  // nothing is written over
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("a new or an empty folder")), patience_ms);
  }

  void a_log_is_shown_beside_our_runs() {
    OpenStudio studio;
    const QString logs = studio.home->filePath(QStringLiteral("theirs"));
    writeLog(logs, "train/loss");
    studio.dialogs.open_answer = logs;
    studio.action("importLogAction")->trigger();
    RunTableModel* table = studio.library->table();
    QTRY_COMPARE_WITH_TIMEOUT(table->rowCount(), 1, patience_ms);
    RunSeries* run = table->run(0);
    QTRY_VERIFY_WITH_TIMEOUT(studio.library->isLoaded(run) && run->last().update == 3, patience_ms);
    QCOMPARE(run->name(), QStringLiteral("theirs (imported)"));
    QCOMPARE(run->last().loss, 1.0);
    QVERIFY(!run->spec());  // its N and ranks are not known
    QVERIFY(studio.window->findChild<MessageBar*>()->text().contains(QStringLiteral("learning rate")));
  }

  void two_imports_of_one_log_are_two_runs() {
    OpenStudio studio;
    const QString logs = studio.home->filePath(QStringLiteral("theirs"));
    writeLog(logs, "train/loss");
    studio.dialogs.open_answer = logs;
    studio.action("importLogAction")->trigger();
    auto* bar = studio.window->findChild<MessageBar*>();
    QVERIFY(bar->text().startsWith(QStringLiteral("Importing ")));
    QVERIFY(studio.offered("Cancel"));
    studio.action("importLogAction")->trigger();  // before the first has ended
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 2, patience_ms);
    QVERIFY(bar->text().startsWith(QStringLiteral("Imported.")));
  }

  void a_table_is_opened_as_a_run() {
    OpenStudio studio;
    const QString file = studio.home->filePath(QStringLiteral("theirs.csv"));
    QFile table(file);
    QVERIFY(table.open(QIODevice::WriteOnly));
    table.write("step,loss,note\n1,3,a\n2,1.5,b\n");
    table.close();
    studio.dialogs.open_answer = file;
    studio.action("importFileAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    RunSeries* run = studio.library->table()->run(0);
    QTRY_VERIFY_WITH_TIMEOUT(studio.library->isLoaded(run) && run->last().loss == 1.5, patience_ms);
    QCOMPARE(run->name(), QStringLiteral("theirs.csv (imported)"));
    QVERIFY(table.open(QIODevice::WriteOnly));
    table.write("step,loss\n1,3\n2,x\n");
    table.close();
    // As other systems may write it.
    const QString capitals = studio.home->filePath(QStringLiteral("THEIRS.CSV"));
    QVERIFY(table.copy(capitals));
    studio.window->openPath(capitals);
    auto* bar = studio.window->findChild<MessageBar*>();
    QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("THEIRS.CSV:3: column 2: \"x\" is no number")),
                              qPrintable(bar->text()), patience_ms);
  }

  /// Out of one home and into another: the run with its notes, and the spec.
  void a_bundle_takes_a_session_to_another_machine() {
    const auto file = std::make_shared<QTemporaryDir>();
    const QString bundle = file->filePath(QStringLiteral("lesson.accrue-bundle"));
    QString id;
    {
      OpenStudio studio(smallSpec(3));
      studio.press(Qt::Key_F5);
      QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::finished, patience_ms);
      RunSeries* run = studio.control->run();
      id = run->id();
      studio.window->findChild<RunsPanel*>()->notebook()->setNotes(run, {.name = QStringLiteral("Mine"),
                                                                         .text = QStringLiteral("as in the lesson"),
                                                                         .tags = {QStringLiteral("class")}});
      studio.set("accumulation.steps", std::int64_t{6});
      auto* bar = studio.window->findChild<MessageBar*>();
      studio.action("exportBundleAction")->trigger();  // cancelled
      QTRY_COMPARE_WITH_TIMEOUT(studio.dialogs.bundle_rows.size(), 1, patience_ms);
      QVERIFY(studio.dialogs.bundle_rows[0].chosen);
      QCOMPARE(studio.dialogs.bundle_rows[0].name, QStringLiteral("Mine"));
      studio.dialogs.save_answer = bundle;
      studio.dialogs.bundle_answer = BundleChoice{.folders = {run->folder()}};
      studio.action("exportBundleAction")->trigger();
      QTRY_VERIFY2_WITH_TIMEOUT(bar->text().contains(QStringLiteral("was written: 1 run")), qPrintable(bar->text()),
                                patience_ms);
    }
    OpenStudio other;
    other.window->openPath(bundle);
    QTRY_COMPARE_WITH_TIMEOUT(other.library->table()->rowCount(), 1, patience_ms);
    RunSeries* run = other.library->table()->run(0);
    QTRY_VERIFY_WITH_TIMEOUT(other.library->isLoaded(run) && run->last().update == 3, patience_ms);
    QCOMPARE(run->id(), id);
    QCOMPARE(run->name(), QStringLiteral("Mine"));
    QCOMPARE(run->notes().text, QStringLiteral("as in the lesson"));
    auto* bar = other.window->findChild<MessageBar*>();
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QStringLiteral("1 run imported"), patience_ms);
    auto* use = other.offered("Use its spec");
    QVERIFY(use);
    use->click();
    QCOMPARE(other.document.spec().accumulation.steps, std::int64_t{6});
    QCOMPARE(other.document.displayName(), QStringLiteral("lesson"));
    // Once more: nothing new. Damaged: said.
    other.window->openPath(bundle);
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QStringLiteral("1 run was here already"), patience_ms);
    QCOMPARE(other.library->table()->rowCount(), 1);
    // It goes with the runs that it speaks of.
    other.window->findChild<RunsPanel*>()->showOnly({run});
    other.action("deleteRunAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(bar->currentId(), QStringLiteral("trash"), patience_ms);
    other.find<QToolButton>("messageClose")->click();
    QCOMPARE(bar->text(), QString());
    QFile damaged(bundle);
    QVERIFY(damaged.resize(damaged.size() / 2));
    other.window->openPath(bundle);
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("cut short")), patience_ms);
    other.openSpec(smallSpec(3));
    other.action("runAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(bar->text(), QString(), patience_ms);
  }

  void a_bundle_takes_what_a_run_is_called_even_without_notes() {
    const auto file = std::make_shared<QTemporaryDir>();
    const QString bundle = file->filePath(QStringLiteral("one.accrue-bundle"));
    {
      RunSpec spec = smallSpec(2);
      spec.run.name = "Demo";
      OpenStudio studio(spec);
      for (const std::int64_t steps : {4, 2}) {
        studio.set("accumulation.steps", steps);
        QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
        const RunSeries* before = studio.control->run();
        studio.action("runAction")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() != before && !studio.control->isLive(), patience_ms);
      }
      const RunSeries* run = studio.control->run();
      QTRY_COMPARE_WITH_TIMEOUT(run->name(), QStringLiteral("Demo, N = 2"), patience_ms);
      studio.dialogs.save_answer = bundle;
      studio.dialogs.bundle_answer = BundleChoice{.folders = {run->folder()}, .notes = false};
      studio.action("exportBundleAction")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(bundle), patience_ms);
    }
    OpenStudio other;
    other.window->openPath(bundle);
    QTRY_COMPARE_WITH_TIMEOUT(other.library->table()->rowCount(), 1, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(other.library->table()->run(0)->name(), QStringLiteral("Demo, N = 2"), patience_ms);
  }

  void the_dialog_says_what_the_weights_weigh() {
    BundleDialog dialog(
        {{.folder = QStringLiteral("/a"), .name = QStringLiteral("A"), .chosen = true, .weight_bytes = 2048},
         {.folder = QStringLiteral("/b"), .name = QStringLiteral("B")}});
    auto* runs = dialog.findChild<QListWidget*>(QStringLiteral("bundleRuns"));
    auto* weights = dialog.findChild<QCheckBox*>(QStringLiteral("bundleWeights"));
    QVERIFY2(weights->text().contains(QStringLiteral("2")), qPrintable(weights->text()));
    weights->click();
    QVERIFY(dialog.choice().weights);
    QCOMPARE(dialog.choice().folders, QStringList{QStringLiteral("/a")});
    runs->item(0)->setCheckState(Qt::Unchecked);
    runs->item(1)->setCheckState(Qt::Checked);
    QVERIFY(!weights->isEnabled() && !dialog.choice().weights);
    QCOMPARE(dialog.choice().folders, QStringList{QStringLiteral("/b")});
  }

  void a_figure_without_room_is_refused_where_its_size_is_chosen() {
    const auto low = [](const FigureSize& size) {
      return size.heightMm < 110.0 ? QStringLiteral("At this width they take a height of 110 mm.") : QString();
    };
    FigureDialog dialog(FigureSize{.heightMm = 90.0}, low);
    auto* height = dialog.findChild<QDoubleSpinBox*>(QStringLiteral("figureHeight"));
    auto* problem = dialog.findChild<QLabel*>(QStringLiteral("figureProblem"));
    QPushButton* choose = nullptr;
    for (auto* button : dialog.findChildren<QPushButton*>())
      if (button->isDefault()) choose = button;
    QVERIFY(height && problem && choose);
    QVERIFY(problem->text().contains(QStringLiteral("110 mm")) && !choose->isEnabled());
    height->setValue(110.0);
    QVERIFY(problem->text().isEmpty() && choose->isEnabled());
  }

  void a_bundle_begins_with_the_runs_that_are_shown_and_takes_all_or_none() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    for (const std::int64_t n : {4, 2, 8}) {
      studio.set("accumulation.steps", n);
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      const int before = studio.library->table()->rowCount();
      studio.action("runAction")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(studio.library->table()->rowCount() == before + 1 && !studio.control->isLive(),
                               patience_ms);
    }
    const QList<RunSeries*> runs = studio.library->table()->runs();
    studio.find<RunsPanel>("runsPanel")->showOnly({runs[0], runs[2]});
    studio.action("exportBundleAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.dialogs.bundle_rows.size(), 3, patience_ms);
    BundleDialog dialog(studio.dialogs.bundle_rows);
    QCOMPARE(dialog.choice().folders, (QStringList{runs[0]->folder(), runs[2]->folder()}));
    dialog.findChild<QPushButton*>(QStringLiteral("bundleNone"))->click();
    QCOMPARE(dialog.choice().folders, QStringList());
    dialog.findChild<QPushButton*>(QStringLiteral("bundleAll"))->click();
    QCOMPARE(dialog.choice().folders.size(), 3);
  }

  void the_loss_is_asked_for_where_no_tag_has_its_name() {
    OpenStudio studio;
    const QString logs = studio.home->filePath(QStringLiteral("theirs"));
    writeLog(logs, "objective");
    studio.dialogs.open_answer = logs;
    studio.dialogs.item_answers = {QStringLiteral("objective")};
    studio.action("importLogAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    QCOMPARE(studio.dialogs.item_questions,
             (QStringList{QStringLiteral("Which of the log's scalars is the loss? objective, speed")}));
    // A file that is not a log is named.
    studio.dialogs.open_answer = studio.home->filePath(QStringLiteral("bare"));
    QVERIFY(QDir().mkdir(studio.dialogs.open_answer));
    studio.action("importLogAction")->trigger();
    auto* bar = studio.window->findChild<MessageBar*>();
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("no event file")), patience_ms);
  }

  /// Each run that needs it is asked about once, with its own names; a name that was given counts for all that have it.
  void runs_that_call_the_loss_differently_are_asked_about_once_each() {
    OpenStudio studio;
    const QString logs = studio.home->filePath(QStringLiteral("theirs"));
    for (const auto& [run, tag] : {std::pair{"a", "cost"}, {"b", "loss"}, {"c", "objective"}, {"d", "cost"}})
      writeLog(logs + QLatin1Char('/') + QLatin1String(run), tag);
    studio.dialogs.open_answer = logs;
    studio.dialogs.item_answers = {QStringLiteral("cost"), QStringLiteral("objective")};
    studio.action("importLogAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 4, patience_ms);
    QCOMPARE(studio.dialogs.item_questions,
             (QStringList{QStringLiteral("Which scalar of a is the loss? cost, speed"),
                          QStringLiteral("Which scalar of c is the loss? objective, speed")}));
  }

  void the_step_is_asked_for_where_no_column_has_its_name() {
    OpenStudio studio;
    const QString table = studio.home->filePath(QStringLiteral("ticks.csv"));
    QFile file(table);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("tick,cost,,f\n4,3,,1\n5,2,,1\n");
    file.close();
    studio.dialogs.item_answers = {QStringLiteral("tick"), QStringLiteral("cost")};
    studio.window->openPath(table);
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    RunSeries* run = studio.library->table()->run(0);
    QTRY_VERIFY_WITH_TIMEOUT(studio.library->isLoaded(run) && run->last().update == 5, patience_ms);
    QCOMPARE(run->last().loss, 2.0);
    QCOMPARE(studio.dialogs.item_questions,
             (QStringList{QStringLiteral("Which of the log's columns is the step? tick, cost, f"),
                          QStringLiteral("Which of the log's scalars is the loss? cost, f")}));
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestExchange)

}  // namespace test_exchange
#include "test_exchange.moc"
