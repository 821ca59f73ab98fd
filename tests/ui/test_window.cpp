// SPDX-License-Identifier: GPL-3.0-or-later
// The window as a whole: closing during a run, layout, messages, drafts, runs from disk.
#include <QDir>
#include <QDockWidget>
#include <QMenu>
#include <QMessageBox>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTimer>
#include <QToolButton>
#include <QTreeView>
#include <algorithm>
#include <fstream>
#include <map>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/preflight/run_order.h"
#include "accrue/run/record/run_store.h"
#include "document/spec_files.h"
#include "live/close_guard.h"
#include "plots/plot_area.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_window {

using namespace accrue;
using namespace accrue::ui;

class TestWindow : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void closing_an_idle_window_asks_nothing() {
    StudioFixture studio;
    studio.show();
    QVERIFY(studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 0);
  }

  void closing_can_be_cancelled() {
    RunningStudio studio("micro_ms=5");
    studio.dialogs.close_answer = {CloseAnswer::cancel, false};
    QVERIFY(!studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 1);
    QVERIFY(studio.window->isVisible());
    QCOMPARE(studio.control->state(), RunState::running);
    studio.endRun();
  }

  void closing_can_checkpoint_and_stop() {
    RunningStudio studio("micro_ms=5");
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

  void closing_can_stop_now() {
    RunningStudio studio("micro_ms=5");
    studio.dialogs.close_answer = {CloseAnswer::stopNow, false};
    QVERIFY(!studio.window->close());
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
    QVERIFY(!studio.control->isLive());
  }

  void a_remembered_answer_is_not_asked_again() {
    RunningStudio studio("micro_ms=5");
    studio.settings->setValue(QStringLiteral("closing/answer"), QStringLiteral("stop"));
    QVERIFY(!studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 0);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  }

  void closing_twice_kills() {
    RunningStudio studio("micro_ms=5,stall=1@9");
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().microStep >= 8, patience_ms);
    studio.dialogs.close_answer = {CloseAnswer::checkpointAndStop, false};
    QVERIFY(!studio.window->close());
    QVERIFY(!studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 1);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  }

  void the_end_of_a_session_asks_nothing_and_keeps_runs_and_edits_data() {
    QTest::addColumn<bool>("asked");
    QTest::newRow("training") << false;
    QTest::newRow("asked what should happen to it") << true;
  }
  void the_end_of_a_session_asks_nothing_and_keeps_runs_and_edits() {
    QFETCH(const bool, asked);
    RunningStudio studio("micro_ms=5");
    studio.set("accumulation.micro_batch", std::int64_t{64});
    const auto drafts = [&] { return QDir(studio.home->path()).entryList({QStringLiteral("draft-*.accrue")}).size(); };
    QCOMPARE(drafts(), 0);
    studio.dialogs.during_close_question = [&] {
      QMessageBox question(studio.window.get());
      QTimer::singleShot(0, studio.window.get(), &MainWindow::endSession);
      question.exec();
    };
    asked ? void(studio.window->close()) : studio.window->endSession();
    QCOMPARE(drafts(), 1);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
    QCOMPARE(studio.dialogs.close_questions, asked ? 1 : 0);
    const RunSeries& run = *studio.control->run();
    QCOMPARE(run.outcome().outcome, QStringLiteral("stopped"));
    QCOMPARE(run.checkpointUpdate(), run.outcome().updates);
    QCOMPARE(drafts(), 1);
  }

  void a_question_whose_run_has_ended_is_withdrawn() {
    RunningStudio studio("micro_ms=5");
    studio.dialogs.during_close_question = [&] {
      QMessageBox question(studio.window.get());
      QTimer::singleShot(0, studio.control.get(), &RunControl::kill);
      question.exec();
    };
    QVERIFY(studio.window->close());
    QCOMPARE(studio.dialogs.close_questions, 1);
  }

  void the_close_question_offers_three_ends_and_cancel() {
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

  void closing_can_leave_the_run_training() {
    RunningStudio studio("micro_ms=5", smallSpec(150));
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

  void a_remembered_answer_can_be_revoked() {
    StudioFixture studio("micro_ms=5");
    studio.settings->setValue(QStringLiteral("closing/answer"), QStringLiteral("stop"));
    RunningStudio again("micro_ms=5", smallSpec(100'000), studio.home);
    QVERIFY(again.action("askOnClosingAction")->isEnabled());
    again.action("askOnClosingAction")->trigger();
    QVERIFY(!again.action("askOnClosingAction")->isEnabled());
    again.dialogs.close_answer = {CloseAnswer::stopNow, true};
    QVERIFY(!again.window->close());
    QCOMPARE(again.dialogs.close_questions, 1);
    QVERIFY(again.action("askOnClosingAction")->isEnabled());
    QTRY_VERIFY_WITH_TIMEOUT(!again.window->isVisible(), patience_ms);
  }

  void a_long_save_is_asked_about() {
    RunningStudio studio("micro_ms=5,stall=1@9");
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->last().microStep >= 8, patience_ms);
    studio.window->closeGuard()->setDeadline(std::chrono::milliseconds(100));
    studio.dialogs.close_answer = {CloseAnswer::checkpointAndStop, false};
    QSignalSpy asked(studio.window->closeGuard(), &CloseGuard::stillSaving);
    QVERIFY(!studio.window->close());
    // More than one deadline passes, and no rank is killed.
    QTRY_VERIFY_WITH_TIMEOUT(asked.count() >= 3, patience_ms);
    QVERIFY(studio.control->isLive());
    QVERIFY(studio.offered("Stop now"));
    QTest::mouseClick(studio.offered("Stop now"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
  }

  void layout_comes_back_and_resets() {
    const auto home = std::make_shared<QTemporaryDir>();
    {
      StudioFixture studio(home, "");
      studio.show();
      studio.find<QDockWidget>("windowDock")->hide();
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    studio.show();
    auto* dock = studio.find<QDockWidget>("windowDock");
    QVERIFY(!dock->isVisible());
    studio.action("resetLayoutAction")->trigger();
    QVERIFY(dock->isVisible());
  }

  void edits_of_a_built_in_spec_are_set_aside_and_not_asked_about() {
    StudioFixture studio("micro_ms=5");
    studio.show();
    studio.dialogs.unsaved_answer = UnsavedAnswer::cancel;  // a question would keep the document
    QVERIFY(studio.window->files()->openDemo());
    const std::int64_t steps = studio.document.spec().accumulation.steps;
    studio.set("accumulation.steps", steps + 3);
    QVERIFY(studio.window->files()->openPreset(QStringLiteral("toy.accrue"), QStringLiteral("Eight points")));
    QCOMPARE(studio.document.displayName(), QStringLiteral("Eight points"));
    auto* button = studio.offered("Bring them back");
    QVERIFY(button);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(studio.document.displayName(), QStringLiteral("Demo"));
    QCOMPARE(studio.document.spec().accumulation.steps, steps + 3);
    QVERIFY(studio.document.isModified());
    // A spec of the user's own is asked about.
    studio.openSpec(smallSpec());
    studio.set("accumulation.steps", std::int64_t{11});
    QVERIFY(!studio.window->files()->openDemo());
    QCOMPARE(studio.document.spec().accumulation.steps, 11);
  }

  /// The curves stay, so the form comes to the front, and a message says what F5 trains.
  void a_spec_opened_beside_the_curves_of_another_says_so() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    auto* bar = studio.find<MessageBar>("messageBar");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    studio.find<QDockWidget>("plannerDock")->raise();
    studio.action("newSpecAction")->trigger();
    QVERIFY2(bar->text().contains(QStringLiteral("F5 trains it")), qPrintable(bar->text()));
    QTRY_VERIFY_WITH_TIMEOUT(!studio.find("fieldForm")->visibleRegion().isEmpty(), patience_ms);
    // Of the newest one, and while a run is live F5 does something else.
    studio.openSpec(smallSpec(100'000));
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(!bar->text().contains(QStringLiteral("F5 trains it")), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.window->findChild<SpecFiles*>()->openPreset(QStringLiteral("ten-batches.accrue"),
                                                       QStringLiteral("Ten batches"));
    QCOMPARE(bar->text(),
             QStringLiteral("Ten batches is open. It can be trained once the run that is live has ended."));
    // The demo has to wait as well, until the run has ended.
    studio.action("startPageAction")->trigger();
    studio.press(Qt::Key_2);
    QVERIFY2(bar->text().contains(QStringLiteral("before the demo begins")), qPrintable(bar->text()));
    studio.endRun();
    QTRY_VERIFY_WITH_TIMEOUT(!bar->text().contains(QStringLiteral("before the demo begins")), patience_ms);
  }

  void every_built_in_spec_opens_from_the_menu() {
    StudioFixture studio("micro_ms=5");
    studio.show();
    auto* menu = studio.find<QMenu>("presetMenu");
    Q_EMIT menu->aboutToShow();
    QVERIFY(menu->actions().size() >= 9);
    for (const QString& name : {QStringLiteral("bert-two"), QStringLiteral("t5-two"), QStringLiteral("toy")}) {
      Q_EMIT menu->aboutToShow();
      auto* action = menu->findChild<QAction*>(QStringLiteral("presetAction.%1.accrue").arg(name));
      QVERIFY2(action, qPrintable(name));
      action->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      QVERIFY2(studio.preflight->result().plan, qPrintable(name));
    }
  }

  void unsaved_edits_survive_closing() {
    const auto home = std::make_shared<QTemporaryDir>();
    {
      OpenStudio studio(home, smallSpec(), "");
      studio.set("accumulation.steps", std::int64_t{11});
      QVERIFY(studio.window->close());
    }
    {
      StudioFixture studio(home, "");
      studio.show();
      QVERIFY(studio.offered("Restore"));
      // Neither restored nor dismissed: still there next time.
      QVERIFY(studio.window->close());
    }
    {
      StudioFixture studio(home, "");
      studio.show();
      auto* button = studio.offered("Restore");
      QVERIFY(button);
      QTest::mouseClick(button, Qt::LeftButton);
      QCOMPARE(studio.document.spec().accumulation.steps, 11);
      QVERIFY(studio.document.isModified());
      QVERIFY(studio.window->close());
    }
    {
      StudioFixture studio(home, "");
      studio.show();
      QVERIFY(studio.offered("Restore"));
      // Closing the message discards them, as it says.
      const QString text = studio.find<QLabel>("messageText")->text();
      QVERIFY2(text.endsWith(QStringLiteral("Close this message to discard them.")), qPrintable(text));
      studio.find<QToolButton>("messageClose")->click();
      QVERIFY(QDir(home->path()).entryList({QStringLiteral("draft-*.accrue")}).isEmpty());
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    QSignalSpy refreshed(studio.library.get(), &RunLibrary::refreshed);
    studio.show();
    QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
    QVERIFY(!studio.find("messageBar")->isVisible());
  }

  void edits_are_not_restored_over_another_document() {
    const auto home = std::make_shared<QTemporaryDir>();
    {
      OpenStudio studio(home, smallSpec(), "");
      studio.set("accumulation.steps", std::int64_t{11});
      QVERIFY(studio.window->close());
    }
    {
      StudioFixture studio(home, "");
      studio.show();
      QVERIFY(studio.offered("Restore"));
      studio.action("newSpecAction")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(!studio.find("messageBar")->isVisible(), patience_ms);
      QVERIFY(studio.window->close());
    }
    // They are still there at the next start.
    StudioFixture studio(home, "");
    studio.show();
    QVERIFY(studio.offered("Restore"));
  }

  void restored_edits_know_their_file() {
    const auto home = std::make_shared<QTemporaryDir>();
    const QString file = home->filePath(QStringLiteral("mine.accrue"));
    {
      OpenStudio studio(home, smallSpec(), "");
      QVERIFY(studio.document.saveAs(file));
      studio.set("accumulation.steps", std::int64_t{11});
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    studio.show();
    auto* button = studio.offered("Restore");
    QVERIFY(button);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(studio.document.filePath(), file);
    QVERIFY(studio.document.isModified());
    studio.action("saveAction")->trigger();
    QVERIFY(!studio.document.isModified());
    SpecDocument saved;
    QVERIFY(!has_errors(saved.open(file)));
    QCOMPARE(saved.spec().accumulation.steps, 11);
  }

  void restored_edits_keep_what_was_kept() {
    const auto home = std::make_shared<QTemporaryDir>();
    {
      OpenStudio studio(home, smallSpec(), "");
      studio.document.setSampleLock(SampleLock::per_update);
      studio.set("accumulation.steps", std::int64_t{8});
      QVERIFY(studio.window->close());
    }
    StudioFixture studio(home, "");
    studio.show();
    auto* button = studio.offered("Restore");
    QVERIFY(button);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(studio.document.sampleLock(), SampleLock::per_update);
    QCOMPARE(studio.document.samplesKept(), std::int64_t{16});
    // Edits that were set aside keep it, too.
    QVERIFY(studio.window->files()->openDemo());
    studio.document.setSampleLock(SampleLock::per_update);
    studio.set("accumulation.micro_batch", studio.document.spec().accumulation.micro_batch * 2);
    QVERIFY(studio.window->files()->openPreset(QStringLiteral("toy.accrue"), QStringLiteral("Eight points")));
    QCOMPARE(studio.document.sampleLock(), SampleLock::none);
    button = studio.offered("Bring them back");
    QVERIFY(button);
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(studio.document.sampleLock(), SampleLock::per_update);
  }

  void edits_of_a_living_window_are_its_own() {
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
      QVERIFY(!second.find("messageBar")->isVisible());
      QVERIFY(second.window->close());
    }
    QCOMPARE(folder.entryList({QStringLiteral("draft-*.accrue")}).size(), 1);
  }

  void return_opens_the_focused_recent_file() {
    const auto home = std::make_shared<QTemporaryDir>();
    const QString file = home->filePath(QStringLiteral("mine.accrue"));
    SpecDocument written;
    written.reset(smallSpec(), QStringLiteral("mine"));
    QVERIFY(written.saveAs(file));
    {
      QSettings settings(home->filePath(QStringLiteral("studio.conf")), QSettings::IniFormat);
      settings.setValue(QStringLiteral("files/recent"),
                        QStringList{home->filePath(QStringLiteral("gone.accrue")), file});
    }
    StudioFixture studio(home, "");
    studio.show();
    auto* card = studio.find<QPushButton>("startRecentFiles");
    QVERIFY(card->isVisible());
    auto* gone = studio.find<QAction>("recentFile.0");
    QTRY_VERIFY_WITH_TIMEOUT(!gone->isEnabled(), patience_ms);
    QVERIFY(studio.find<QAction>("recentFile.1")->isEnabled());
    // The menu has the keyboard while it is open; it passes by what is gone.
    QTimer::singleShot(0, card->menu(), [menu = card->menu()] {
      QTest::keyClick(menu, Qt::Key_Down);
      QTest::keyClick(menu, Qt::Key_Return);
    });
    card->setFocus();
    studio.press(Qt::Key_Return);
    QCOMPARE(studio.document.filePath(), file);
    QVERIFY(!studio.control->isLive());
    QVERIFY(studio.control->state() != RunState::preflight);
  }

  void a_run_folder_is_listed_selected_and_replayed() {
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
    auto* table = studio.find<QTreeView>("runsTable");
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

  void an_interrupted_run_is_offered_for_resume() {
    const auto home = std::make_shared<QTemporaryDir>();
    QString folder;
    {
      RunSpec spec = smallSpec(60);
      spec.checkpoint.every_updates = 1;
      RunningStudio studio("micro_ms=5", spec, home);
      folder = studio.control->run()->folder();
      studio.press(Qt::Key_F8);  // paused: every event of the newest checkpoint's update has arrived
      QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
      studio.endRun();
    }
    // As a supervisor that died would leave it: no end recorded.
    const auto path = std::filesystem::path(folder.toStdString());
    std::ifstream events(path / "events.jsonl");
    std::string kept;
    for (std::string line; std::getline(events, line);)
      if (line.find("\"run_finished\"") == std::string::npos && line.find("failed\"") == std::string::npos)
        kept += line + '\n';
    std::ofstream(path / "events.jsonl") << kept;
    std::filesystem::remove(path / "summary.json");

    StudioFixture studio(home, "micro_ms=1");
    studio.show();
    auto* button = studio.offered("Resume from update");
    QVERIFY(button);
    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QCOMPARE(studio.control->run()->last().update, 60);
    QCOMPARE(studio.control->run()->series(Metric::updateLoss).size(), std::size_t{60});
  }

  /// Its checkpoints remained on the machine that trained it.
  void a_run_from_a_bundle_is_not_offered_for_resume() {
    const auto home = std::make_shared<QTemporaryDir>();
    std::filesystem::path folder;
    {
      RunningStudio studio("micro_ms=5", smallSpec(60), home);
      folder = studio.control->run()->folder().toStdString();
      studio.endRun();
    }
    // Of an interrupted run, as an import leaves it.
    std::filesystem::remove(folder / "summary.json");
    std::filesystem::resize_file(folder / "events.jsonl", 3 * std::filesystem::file_size(folder / "events.jsonl") / 4);
    std::ofstream(folder / import_mark) << "{}";

    StudioFixture studio(home, "micro_ms=1");
    studio.show();
    auto* table = studio.find<QTreeView>("runsTable");
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, patience_ms);
    QVERIFY(studio.library->isImported(studio.library->table()->run(0)->folder()));
    QVERIFY(studio.library->interrupted().isEmpty());
    QVERIFY(studio.window->findChild<MessageBar*>()->currentId() != QLatin1String("interrupted"));
    QSignalSpy loaded(studio.library.get(), &RunLibrary::loaded);
    table->setCurrentIndex(table->model()->index(0, 0));
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QVERIFY(!studio.action("resumeAction")->isEnabled());
    QVERIFY(!studio.action("branchAction")->isEnabled());
    QVERIFY(studio.action("copyCommandAction")->isEnabled());
  }

  void a_branch_goes_on_from_the_selected_run_under_the_current_set_up() {
    const auto home = std::make_shared<QTemporaryDir>();
    QString first;
    {
      RunningStudio studio("micro_ms=5", smallSpec(60), home);
      studio.control->stop();
      QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
      first = studio.control->run()->folder();
    }
    StudioFixture studio(home, "micro_ms=1");
    studio.show();
    auto* table = studio.find<QTreeView>("runsTable");
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, patience_ms);
    QVERIFY(!studio.action("branchAction")->isEnabled());
    table->setCurrentIndex(table->model()->index(0, 0));
    QVERIFY(studio.action("branchAction")->isEnabled());

    // Another model cannot go on from there.
    RunSpec other = smallSpec(60);
    other.run.seed += 1;
    studio.document.setSpec(other, QStringLiteral("another order"));
    QSignalSpy refused(studio.control.get(), &RunControl::refused);
    studio.action("branchAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(refused.count(), 1, patience_ms);
    const auto findings = refused.first().first().value<std::vector<Finding>>();
    QCOMPARE(QString::fromStdString(findings.front().key), QStringLiteral("run.seed"));
    QVERIFY(!studio.control->isLive());

    other = smallSpec(60);
    other.optimizer.lr *= 0.5;
    studio.document.setSpec(other, QStringLiteral("half the rate"));
    QSignalSpy failed(studio.control.get(), &RunControl::commandFailed);
    studio.action("branchAction")->trigger();
    studio.control->attach(first);  // one thing at a time: not while the branch is made ready
    studio.control->resume(first);
    QCOMPARE(studio.control->state(), RunState::preflight);
    QCOMPARE(failed.count(), 0);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    const auto order =
        read_run_order(std::filesystem::path(studio.control->run()->folder().toStdString()) / "plan.json");
    QVERIFY(order);
    QCOMPARE(order->changed_keys, std::vector<std::string>{"optimizer.lr"});
    QVERIFY(studio.control->run()->folder() != first);
    const auto summary = read_run(studio.control->run()->folder().toStdString());
    QVERIFY(summary && !summary->branched_from.empty());
    QCOMPARE(summary->updates, 60);
  }

  void closing_waits_for_the_copy_of_a_branchs_checkpoint() {
    const auto home = std::make_shared<QTemporaryDir>();
    RunSpec spec = smallSpec(60);
    spec.schedule.kind = ScheduleKind::cosine;
    RunningStudio studio("micro_ms=5", spec, home);
    studio.control->stop();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
    // A rate that follows the run's length is worth a warning, which is given while the checkpoint is copied.
    studio.set("run.updates", std::int64_t{90});
    bool copying = false;
    bool stayed = false;
    connect(studio.control.get(), &RunControl::warned, this, [&] {
      copying = studio.control->hosting() == Hosting::begins;
      stayed = !studio.window->close();
    });
    studio.control->branch(studio.control->run()->folder());
    QTRY_VERIFY_WITH_TIMEOUT(!studio.window->isVisible(), patience_ms);
    QVERIFY(copying && stayed);
    QCOMPARE(studio.control->hosting(), Hosting::none);
  }

  void the_selected_run_can_be_resumed() {
    const auto home = std::make_shared<QTemporaryDir>();
    {
      RunningStudio studio("micro_ms=5", smallSpec(60), home);
      studio.control->stop();
      QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
    }
    StudioFixture studio(home, "micro_ms=1");
    studio.show();
    auto* table = studio.find<QTreeView>("runsTable");
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

  void a_file_with_errors_costs_no_edits() {
    OpenStudio studio;
    studio.set("accumulation.steps", std::int64_t{11});
    const QString path = studio.home->filePath(QStringLiteral("bad.accrue"));
    std::ofstream(path.toStdString()) << "accrue = 1\n[accumulation]\nsteps = 0\nnonsense = 3\n";
    studio.dialogs.open_answer = path;
    studio.dialogs.unsaved_answer = UnsavedAnswer::cancel;  // would end it, were it asked
    studio.action("openAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(studio.find("messageBar")->isVisible(), patience_ms);
    QCOMPARE(studio.document.spec().accumulation.steps, 11);
  }

  void changes_theme_live() {
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

  void fits_a_small_screen() {
    OpenStudio studio;
    QVERIFY2(studio.window->minimumSizeHint().width() <= 1366,
             qPrintable(QString::number(studio.window->minimumSizeHint().width())));
    QVERIFY2(studio.window->minimumSizeHint().height() <= 768,
             qPrintable(QString::number(studio.window->minimumSizeHint().height())));
  }

  void nothing_is_lost_in_a_burst() {
    OpenStudio studio(smallSpec(1'000'000), "rate=10000");
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
};

ACCRUE_WINDOW_TEST_MAIN(TestWindow)

}  // namespace test_window
#include "test_window.moc"
