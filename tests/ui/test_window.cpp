// SPDX-License-Identifier: GPL-3.0-or-later
// The window as a whole: closing during a run, layout, messages, drafts, runs from disk.
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QMessageBox>
#include <QPushButton>
#include <QToolButton>
#include <QTreeView>
#include <algorithm>
#include <map>

#include "accrue/run/event_reader.h"
#include "accrue/run/run_store.h"
#include "pages/close_guard.h"
#include "pages/window_files.h"
#include "plots/plot_area.h"
#include "studio_fixture.h"

using namespace accrue;
using namespace accrue::ui;

class TestWindow : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void closing_an_idle_window_asks_nothing();
  void closing_can_be_cancelled();
  void closing_can_checkpoint_and_stop();
  void closing_can_stop_now();
  void a_remembered_answer_is_not_asked_again();
  void closing_twice_kills();
  void the_close_question_offers_three_ends_and_cancel();
  void closing_can_leave_the_run_training();
  void a_remembered_answer_can_be_revoked();
  void a_long_save_is_asked_about();
  void layout_comes_back_and_resets();
  void unsaved_edits_survive_closing();
  void restored_edits_know_their_file();
  void edits_of_a_living_window_are_its_own();
  void return_opens_the_focused_recent_file();
  void a_run_folder_is_listed_selected_and_replayed();
  void an_interrupted_run_is_offered_for_resume();
  void the_selected_run_can_be_resumed();
  void a_file_with_errors_costs_no_edits();
  void changes_theme_live();
  void fits_a_small_screen();
  void nothing_is_lost_in_a_burst();

 private:
  static void runUntilRunning(StudioFixture& studio, const RunSpec& spec);
};

void TestWindow::runUntilRunning(StudioFixture& studio, const RunSpec& spec) {
  studio.show();
  studio.openSpec(spec);
  studio.press(Qt::Key_F5);
  QTRY_VERIFY_WITH_TIMEOUT(studio.control->state() == RunState::running && studio.control->run()->last().update >= 1,
                           patience_ms);
}

void TestWindow::closing_an_idle_window_asks_nothing() {
  StudioFixture studio;
  studio.show();
  QVERIFY(studio.window->close());
  QCOMPARE(studio.dialogs.close_questions, 0);
}

void TestWindow::closing_can_be_cancelled() {
  StudioFixture studio("micro_ms=5");
  runUntilRunning(studio, smallSpec(100'000));
  studio.dialogs.close_answer = {CloseAnswer::cancel, false};
  QVERIFY(!studio.window->close());
  QCOMPARE(studio.dialogs.close_questions, 1);
  QVERIFY(studio.window->isVisible());
  QCOMPARE(studio.control->state(), RunState::running);
  studio.control->kill();
  QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
}

void TestWindow::closing_can_checkpoint_and_stop() {
  StudioFixture studio("micro_ms=5");
  runUntilRunning(studio, smallSpec(100'000));
  studio.dialogs.close_answer = {CloseAnswer::checkpointAndStop, false};
  QVERIFY(!studio.window->close());
  QVERIFY(studio.window->isVisible());
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  QVERIFY(!studio.control->isLive());
  QCOMPARE(studio.control->run()->outcome().outcome, QStringLiteral("stopped"));
  QSignalSpy refreshed(studio.library.get(), &RunLibrary::refreshed);
  studio.library->refresh();
  QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
  QVERIFY(studio.library->resumeUpdate(studio.control->run()->folder()) >= 1);
}

void TestWindow::closing_can_stop_now() {
  StudioFixture studio("micro_ms=5");
  runUntilRunning(studio, smallSpec(100'000));
  studio.dialogs.close_answer = {CloseAnswer::stopNow, false};
  QVERIFY(!studio.window->close());
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  QVERIFY(!studio.control->isLive());
}

void TestWindow::a_remembered_answer_is_not_asked_again() {
  StudioFixture studio("micro_ms=5");
  studio.settings->setValue(QStringLiteral("closing/answer"), QStringLiteral("stop"));
  runUntilRunning(studio, smallSpec(100'000));
  QVERIFY(!studio.window->close());
  QCOMPARE(studio.dialogs.close_questions, 0);
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
}

void TestWindow::closing_twice_kills() {
  StudioFixture studio("micro_ms=5,stall=1@9");
  runUntilRunning(studio, smallSpec(100'000));
  QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().microStep >= 8, patience_ms);
  studio.dialogs.close_answer = {CloseAnswer::checkpointAndStop, false};
  QVERIFY(!studio.window->close());
  QVERIFY(!studio.window->close());
  QCOMPARE(studio.dialogs.close_questions, 1);
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
}

void TestWindow::the_close_question_offers_three_ends_and_cancel() {
  WidgetDialogs dialogs;
  QStringList offered;
  QTimer::singleShot(0, this, [&offered] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    QVERIFY(box);
    QAbstractButton* keep = nullptr;
    for (QAbstractButton* button : box->buttons()) {
      offered.append(button->text().remove(QLatin1Char('&')));
      if (offered.last() == QStringLiteral("Keep running")) keep = button;
    }
    keep ? keep->click() : box->reject();
  });
  const CloseChoice choice = dialogs.askClose(nullptr, QStringLiteral("What should become of it?"));
  for (const char* text : {"Keep running", "Checkpoint and stop", "Stop now", "Cancel"})
    QVERIFY2(offered.contains(QLatin1String(text)), text);
  QCOMPARE(choice.answer, CloseAnswer::keepRunning);
  QVERIFY(!choice.remember);
}

void TestWindow::closing_can_leave_the_run_training() {
  StudioFixture studio("micro_ms=5");
  runUntilRunning(studio, smallSpec(150));
  const QString folder = studio.control->run()->folder();
  studio.dialogs.close_answer = {CloseAnswer::keepRunning, true};
  QVERIFY(!studio.window->close());
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  QCOMPARE(studio.settings->value(QStringLiteral("closing/answer")).toString(), QStringLiteral("keep"));
  QCOMPARE(studio.control->run()->outcome().outcome, QStringLiteral("stopped"));
  const std::int64_t left_at = studio.control->run()->last().update;
  QVERIFY(left_at < 150);
  const auto state = [&folder] {
    const auto run = read_run(folder.toStdString());
    return run ? QString::fromStdString(run->state) : QString();
  };
  QTRY_COMPARE_WITH_TIMEOUT(state(), QStringLiteral("finished"), 2 * patience_ms);
  QCOMPARE(read_run(folder.toStdString())->updates, 150);
}

void TestWindow::a_remembered_answer_can_be_revoked() {
  StudioFixture studio("micro_ms=5");
  studio.settings->setValue(QStringLiteral("closing/answer"), QStringLiteral("stop"));
  StudioFixture again(studio.home, "micro_ms=5");
  QVERIFY(again.action("askOnClosingAction")->isEnabled());
  again.action("askOnClosingAction")->trigger();
  QVERIFY(!again.action("askOnClosingAction")->isEnabled());
  runUntilRunning(again, smallSpec(100'000));
  again.dialogs.close_answer = {CloseAnswer::stopNow, true};
  QVERIFY(!again.window->close());
  QCOMPARE(again.dialogs.close_questions, 1);
  QVERIFY(again.action("askOnClosingAction")->isEnabled());
  QTRY_VERIFY_WITH_TIMEOUT(!again.window->isVisible(), patience_ms);
}

void TestWindow::a_long_save_is_asked_about() {
  StudioFixture studio("micro_ms=5,stall=1@9");
  runUntilRunning(studio, smallSpec(100'000));
  QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().microStep >= 8, patience_ms);
  studio.window->closeGuard()->setDeadline(std::chrono::milliseconds(100));
  studio.dialogs.close_answer = {CloseAnswer::checkpointAndStop, false};
  QSignalSpy asked(studio.window->closeGuard(), &CloseGuard::stillSaving);
  QVERIFY(!studio.window->close());
  auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
  // More than one deadline passes and nobody is killed.
  QTRY_VERIFY_WITH_TIMEOUT(asked.count() >= 3, patience_ms);
  QVERIFY(studio.control->isLive());
  QVERIFY(button->isVisible());
  QCOMPARE(button->text(), QStringLiteral("Stop now"));
  QTest::mouseClick(button, Qt::LeftButton);
  QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
}

void TestWindow::layout_comes_back_and_resets() {
  const auto home = std::make_shared<QTemporaryDir>();
  {
    StudioFixture studio(home, "");
    studio.show();
    studio.find<QDockWidget>(QStringLiteral("windowDock"))->hide();
    QVERIFY(studio.window->close());
  }
  StudioFixture studio(home, "");
  studio.show();
  auto* dock = studio.find<QDockWidget>(QStringLiteral("windowDock"));
  QVERIFY(!dock->isVisible());
  studio.action("resetLayoutAction")->trigger();
  QVERIFY(dock->isVisible());
}

void TestWindow::unsaved_edits_survive_closing() {
  const auto home = std::make_shared<QTemporaryDir>();
  {
    StudioFixture studio(home, "");
    studio.show();
    studio.openSpec(smallSpec());
    studio.document.setField(*find_field("accumulation.steps"), std::int64_t{11});
    QVERIFY(studio.window->close());
  }
  {
    StudioFixture studio(home, "");
    studio.show();
    auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
    QTRY_VERIFY_WITH_TIMEOUT(button->isVisible() && button->text() == QStringLiteral("Restore"), patience_ms);
    // Neither restored nor dismissed: still there next time.
    QVERIFY(studio.window->close());
  }
  {
    StudioFixture studio(home, "");
    studio.show();
    auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
    QTRY_VERIFY_WITH_TIMEOUT(button->isVisible() && button->text() == QStringLiteral("Restore"), patience_ms);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(studio.document.spec().accumulation.steps, 11);
    QVERIFY(studio.document.isModified());
    QVERIFY(studio.window->close());
  }
  {
    StudioFixture studio(home, "");
    studio.show();
    auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
    QTRY_VERIFY_WITH_TIMEOUT(button->isVisible() && button->text() == QStringLiteral("Restore"), patience_ms);
    studio.find<QToolButton>(QStringLiteral("messageClose"))->click();
    QVERIFY(studio.window->close());
  }
  StudioFixture studio(home, "");
  QSignalSpy refreshed(studio.library.get(), &RunLibrary::refreshed);
  studio.show();
  QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
  QVERIFY(!studio.find(QStringLiteral("messageBar"))->isVisible());
}

void TestWindow::restored_edits_know_their_file() {
  const auto home = std::make_shared<QTemporaryDir>();
  const QString file = home->filePath(QStringLiteral("mine.accrue"));
  {
    StudioFixture studio(home, "");
    studio.show();
    studio.openSpec(smallSpec());
    QVERIFY(studio.document.saveAs(file));
    studio.document.setField(*find_field("accumulation.steps"), std::int64_t{11});
    QVERIFY(studio.window->close());
  }
  StudioFixture studio(home, "");
  studio.show();
  auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
  QTRY_VERIFY_WITH_TIMEOUT(button->isVisible() && button->text() == QStringLiteral("Restore"), patience_ms);
  QTest::mouseClick(button, Qt::LeftButton);
  QCOMPARE(studio.document.filePath(), file);
  QVERIFY(studio.document.isModified());
  studio.action("saveAction")->trigger();
  QVERIFY(!studio.document.isModified());
  SpecDocument saved;
  QVERIFY(!has_errors(saved.open(file)));
  QCOMPARE(saved.spec().accumulation.steps, 11);
}

void TestWindow::edits_of_a_living_window_are_its_own() {
  const auto home = std::make_shared<QTemporaryDir>();
  StudioFixture first(home, "");
  first.show();
  first.document.restore(smallSpec(), QStringLiteral("mine"), {}, {});  // unsaved, and kept at once
  const QDir folder(home->path());
  QCOMPARE(folder.entryList({QStringLiteral("draft-*.accrue")}).size(), 1);
  {
    StudioFixture second(home, "");
    QSignalSpy refreshed(second.library.get(), &RunLibrary::refreshed);
    second.show();
    QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
    QVERIFY(!second.find(QStringLiteral("messageBar"))->isVisible());
    QVERIFY(second.window->close());
  }
  QCOMPARE(folder.entryList({QStringLiteral("draft-*.accrue")}).size(), 1);
}

void TestWindow::return_opens_the_focused_recent_file() {
  const auto home = std::make_shared<QTemporaryDir>();
  const QString file = home->filePath(QStringLiteral("mine.accrue"));
  SpecDocument written;
  written.reset(smallSpec(), QStringLiteral("mine"));
  QVERIFY(written.saveAs(file));
  {
    QSettings settings(home->filePath(QStringLiteral("studio.conf")), QSettings::IniFormat);
    settings.setValue(QStringLiteral("files/recent"), QStringList{home->filePath(QStringLiteral("gone.accrue")), file});
  }
  StudioFixture studio(home, "");
  studio.show();
  auto* gone = studio.find<QPushButton>(QStringLiteral("recentFile.0"));
  QTRY_VERIFY_WITH_TIMEOUT(!gone->isEnabled(), patience_ms);
  auto* there = studio.find<QPushButton>(QStringLiteral("recentFile.1"));
  QVERIFY(there->isEnabled());
  there->setFocus();
  studio.press(Qt::Key_Return);
  QCOMPARE(studio.document.filePath(), file);
  QVERIFY(!studio.control->isLive());
  QVERIFY(studio.control->state() != RunState::preflight);
}

void TestWindow::a_run_folder_is_listed_selected_and_replayed() {
  const auto home = std::make_shared<QTemporaryDir>();
  std::size_t points = 0;
  QString folder;
  {
    StudioFixture studio(home, "micro_ms=1");
    studio.show();
    studio.openSpec(smallSpec(20));
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    points = studio.control->run()->series(Metric::updateLoss).size();
    folder = studio.control->run()->folder();
    QCOMPARE(points, std::size_t{20});
  }
  StudioFixture studio(home, "");
  studio.show();
  auto* table = studio.find<QTreeView>(QStringLiteral("runsTable"));
  QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, patience_ms);
  RunSeries* run = studio.library->table()->run(0);
  QCOMPARE(run->state(), RunState::finished);
  QVERIFY(!run->hasEvents());
  QSignalSpy loaded(studio.library.get(), &RunLibrary::loaded);
  table->setCurrentIndex(table->model()->index(0, 0));
  QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
  QCOMPARE(run->series(Metric::updateLoss).size(), points);
  QVERIFY(run->plan().has_value());
  QCOMPARE(studio.window->plots()->focusedRun(), run);
  QVERIFY(studio.action("copyCommandAction")->isEnabled());
}

void TestWindow::an_interrupted_run_is_offered_for_resume() {
  const auto home = std::make_shared<QTemporaryDir>();
  QString folder;
  {
    StudioFixture studio(home, "micro_ms=5");
    RunSpec spec = smallSpec(60);
    spec.checkpoint.every_updates = 1;
    runUntilRunning(studio, spec);
    folder = studio.control->run()->folder();
    studio.control->kill();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
  }
  // As a supervisor that died would leave it: no end recorded.
  QFile events(QDir(folder).filePath(QStringLiteral("events.jsonl")));
  QVERIFY(events.open(QIODevice::ReadOnly));
  QByteArray kept;
  for (const QByteArray& line : events.readAll().split('\n'))
    if (!line.isEmpty() && !line.contains("\"run_finished\"") && !line.contains("\"failed\"") &&
        !line.contains("\"rank_failed\""))
      kept += line + '\n';
  events.close();
  QVERIFY(events.open(QIODevice::WriteOnly | QIODevice::Truncate));
  events.write(kept);
  events.close();
  QFile::remove(QDir(folder).filePath(QStringLiteral("summary.json")));

  StudioFixture studio(home, "micro_ms=1");
  studio.show();
  auto* button = studio.find<QPushButton>(QStringLiteral("messageAction"));
  QTRY_VERIFY_WITH_TIMEOUT(button->isVisible() && button->text().startsWith(QStringLiteral("Resume from update")),
                           patience_ms);
  QTest::mouseClick(button, Qt::LeftButton);
  QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
  QCOMPARE(studio.control->run()->last().update, 60);
  QCOMPARE(studio.control->run()->series(Metric::updateLoss).size(), std::size_t{60});
}

void TestWindow::the_selected_run_can_be_resumed() {
  const auto home = std::make_shared<QTemporaryDir>();
  {
    StudioFixture studio(home, "micro_ms=5");
    runUntilRunning(studio, smallSpec(60));
    studio.control->checkpointAndStop();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
  }
  StudioFixture studio(home, "micro_ms=1");
  studio.show();
  auto* table = studio.find<QTreeView>(QStringLiteral("runsTable"));
  QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, patience_ms);
  QVERIFY(!studio.action("resumeAction")->isEnabled());
  table->setCurrentIndex(table->model()->index(0, 0));
  QVERIFY(studio.action("resumeAction")->isEnabled());
  QVERIFY(!studio.action("attachAction")->isEnabled());
  studio.action("resumeAction")->trigger();
  QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
  QCOMPARE(studio.control->run()->last().update, 60);
  QVERIFY(!studio.action("resumeAction")->isEnabled());
}

void TestWindow::a_file_with_errors_costs_no_edits() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  studio.document.setField(*find_field("accumulation.steps"), std::int64_t{11});
  const QString path = studio.home->filePath(QStringLiteral("bad.accrue"));
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("accrue = 1\n[accumulation]\nsteps = 0\nnonsense = 3\n");
  file.close();
  studio.dialogs.open_answer = path;
  studio.dialogs.unsaved_answer = UnsavedAnswer::cancel;  // would end it, were it asked
  studio.action("openAction")->trigger();
  QTRY_VERIFY_WITH_TIMEOUT(studio.find(QStringLiteral("messageBar"))->isVisible(), patience_ms);
  QCOMPARE(studio.document.spec().accumulation.steps, 11);
}

void TestWindow::changes_theme_live() {
  StudioFixture studio;
  studio.show();
  const auto lightness = [&studio] { return studio.window->grab().toImage().pixelColor(4, 60).lightness(); };
  studio.action("themeAction.dark")->trigger();
  QVERIFY(studio.theme->dark());
  QTRY_VERIFY(lightness() < 64);
  studio.action("themeAction.light")->trigger();
  QVERIFY(!studio.theme->dark());
  QTRY_VERIFY(lightness() > 192);
  studio.action("themeAction.system")->trigger();
}

void TestWindow::fits_a_small_screen() {
  StudioFixture studio;
  studio.show();
  studio.openSpec(smallSpec());
  QVERIFY2(studio.window->minimumSizeHint().width() <= 1366,
           qPrintable(QString::number(studio.window->minimumSizeHint().width())));
  QVERIFY2(studio.window->minimumSizeHint().height() <= 768,
           qPrintable(QString::number(studio.window->minimumSizeHint().height())));
}

void TestWindow::nothing_is_lost_in_a_burst() {
  StudioFixture studio("rate=10000");
  studio.show();
  studio.openSpec(smallSpec(1'000'000));
  studio.press(Qt::Key_F5);
  QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run()->last().microStep > 20'000, patience_ms);
  const std::int64_t steps = studio.control->run()->last().microStep;
  studio.control->stop();
  QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
  // The window holds every micro-step that the run folder does.
  const auto read =
      read_events(QDir(studio.control->run()->folder()).filePath(QStringLiteral("events.jsonl")).toStdString());
  QVERIFY(read);
  std::map<std::int64_t, int> ranks_of;
  for (const RunEvent& event : read->events)
    if (const auto* steps = std::get_if<MicroSteps>(&event.body))
      for (const std::int64_t step : steps->micro_step) ++ranks_of[step];
  const auto complete =
      std::count_if(ranks_of.begin(), ranks_of.end(), [](const auto& entry) { return entry.second == 2; });
  QCOMPARE(studio.control->run()->series(Metric::microLoss).size(), static_cast<std::size_t>(complete));
  QVERIFY(complete >= steps);
}

QTEST_MAIN(TestWindow)
#include "test_window.moc"
