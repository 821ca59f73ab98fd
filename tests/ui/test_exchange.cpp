// SPDX-License-Identifier: GPL-3.0-or-later
// Export to code, traces and TensorBoard's files in and out, in a whole window over fake ranks.
#include <QAction>
#include <QComboBox>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>

#include "accrue/run/code_export.h"
#include "accrue/run/tensorboard_file.h"
#include "models/run_table_model.h"
#include "studio_fixture.h"
#include "widgets/message_bar.h"

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
    // What a tool cannot take is refused by its key.
    studio.set("schedule.clock", std::string("samples"));
    QTRY_VERIFY_WITH_TIMEOUT(!save->isEnabled(), patience_ms);
    QVERIFY(
        sheet->findChild<QLabel*>(QStringLiteral("exportVerdict"))->text().contains(QStringLiteral("schedule.clock")));
    auto* target = sheet->findChild<QComboBox*>(QStringLiteral("exportTarget"));
    target->setCurrentIndex(static_cast<int>(CodeTarget::deepspeed));
    QVERIFY(save->isEnabled());
    QVERIFY(missing->count() > 0);
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

  void the_loss_is_asked_for_where_no_tag_has_its_name() {
    OpenStudio studio;
    const QString logs = studio.home->filePath(QStringLiteral("theirs"));
    writeLog(logs, "objective");
    studio.dialogs.open_answer = logs;
    studio.dialogs.item_answer = QStringLiteral("objective");
    studio.action("importLogAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    QCOMPARE(studio.dialogs.items_asked, (QStringList{QStringLiteral("objective"), QStringLiteral("speed")}));
    // What is no log is named.
    studio.dialogs.open_answer = studio.home->path();
    studio.action("importLogAction")->trigger();
    auto* bar = studio.window->findChild<MessageBar*>();
    QTRY_VERIFY_WITH_TIMEOUT(bar->text().contains(QStringLiteral("no event file")), patience_ms);
  }
};

QTEST_MAIN(TestExchange)
#include "test_exchange.moc"
