// SPDX-License-Identifier: GPL-3.0-or-later
// Commands that each state allows: the table, and a real run through its states.
#include <QAction>
#include <QDir>
#include <QFile>
#include <QLabel>
#include <QResizeEvent>
#include <QSignalSpy>
#include <QTreeView>
#include <fstream>

#include "accrue/run/preflight/run_order.h"
#include "live/run_actions.h"
#include "live/status_row.h"
#include "made_run.h"
#include "runs/event_log_model.h"
#include "runs/run_table_model.h"
#include "runs/runs_panel.h"
#include "series/event_text.h"
#include "series/run_text.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"
#include "widgets/state_chip.h"

namespace test_states {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

/// Object names of the enabled run commands.
QSet<QString> enabled(const StudioFixture& studio) {
  QSet<QString> names;
  for (const char* name :
       {"runAction", "runPausedAction", "pauseAction", "stepPhaseAction", "stepMicroAction", "stepUpdateAction",
        "stopAction", "killAction", "checkpointAction", "stopUnsavedAction", "setStepsAction", "resumeAction"})
    if (studio.action(name)->isEnabled()) names.insert(QLatin1String(name));
  return names;
}

QSet<QString> names(std::initializer_list<const char*> list) {
  QSet<QString> set;
  for (const char* name : list) set.insert(QLatin1String(name));
  return set;
}

const QSet<QString> liveSet =
    names({"pauseAction", "stepPhaseAction", "stepMicroAction", "stepUpdateAction", "stopAction", "killAction",
           "checkpointAction", "stopUnsavedAction", "setStepsAction"});

}  // namespace

class TestStates : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void table_of_enabled_actions_data() {
    using enum RunAction;
    QTest::addColumn<RunState>("state");
    QTest::addColumn<RunActions>("actions");
    QTest::newRow("idle") << RunState::idle << RunActions{edit, run, resume};
    QTest::newRow("preflight") << RunState::preflight << RunActions{stop};
    QTest::newRow("starting") << RunState::starting << RunActions{stop, kill};
    const RunActions live{edit, pause, step, stop, kill, checkpoint, stopUnsaved, setSteps};
    QTest::newRow("running") << RunState::running << live;
    QTest::newRow("degraded") << RunState::degraded << live;
    QTest::newRow("paused") << RunState::paused
                            << RunActions{edit, proceed, step, stop, kill, checkpoint, stopUnsaved, setSteps};
    QTest::newRow("restarting") << RunState::restarting << RunActions{stop, kill};
    QTest::newRow("stopping") << RunState::stopping << RunActions{kill};
    QTest::newRow("failed") << RunState::failed << RunActions{edit, run, resume};
    QTest::newRow("finished") << RunState::finished << RunActions{edit, run, resume};
  }

  void table_of_enabled_actions() {
    QFETCH(RunState, state);
    QFETCH(RunActions, actions);
    QVERIFY(enabledActions(state) == actions);
  }

  void a_run_goes_through_its_states() {
    OpenStudio studio(smallSpec(10'000), "micro_ms=20");
    QCOMPARE(studio.control->state(), RunState::idle);
    // A step of a run that is not there begins one, paused.
    QCOMPARE(enabled(studio), names({"runAction", "runPausedAction", "stepPhaseAction", "stepMicroAction"}));

    QList<RunState> seen;
    connect(studio.control.get(), &RunControl::stateChanged, this, [&seen](RunState state) {
      if (seen.isEmpty() || seen.last() != state) seen.append(state);
    });
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QCOMPARE(seen.first(), RunState::preflight);
    QVERIFY(seen.contains(RunState::starting));
    QCOMPARE(enabled(studio), liveSet);

    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QCOMPARE(enabled(studio), liveSet);
    QCOMPARE(studio.action("pauseAction")->iconText(), QStringLiteral("Continue"));
    auto* status = studio.find<StatusRow>("statusRow");
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Paused"), patience_ms);

    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    studio.press(Qt::Key_F5);  // the key that began it
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    studio.press(Qt::Key_F5, Qt::ShiftModifier);
    QCOMPARE(studio.control->state(), RunState::stopping);
    QCOMPARE(enabled(studio), names({"stopAction", "killAction"}));
    QCOMPARE(studio.action("stopAction")->iconText(), QStringLiteral("Kill"));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QCOMPARE(studio.control->run()->outcome().outcome, QStringLiteral("stopped"));
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Stopped"), patience_ms);
    QCOMPARE(studio.control->exitStatus(), 130);
    QVERIFY(studio.action("runAction")->isEnabled());
  }

  void numbers_without_room_take_the_less_important_with_them() {
    const MadeRun made;
    RunSeries run(QStringLiteral("made"), 0);
    run.setPlan(made.plan());
    run.append(made.events(5));
    StatusRow row;
    row.refresh(&run, RunState::finished, RunHost::here, QStringLiteral("shm"));
    int both = 0;
    int none = 0;
    for (int width = 1600; width > 300; width -= 4) {
      row.resize(width, row.sizeHint().height());
      QResizeEvent resized(row.size(), row.size());
      QCoreApplication::sendEvent(&row, &resized);
      const auto shown = [&row](const char* name) { return !row.findChild<QLabel*>(QLatin1String(name))->isHidden(); };
      both += shown("statusProgress") && shown("statusRanks");
      none += !shown("statusProgress");
      QVERIFY2(shown("statusProgress") || !shown("statusRanks"), qPrintable(QString::number(width)));
    }
    QVERIFY(both > 0 && none > 0);
  }

  void stop_saves_and_stop_without_saving_does_not_data() {
    QTest::addColumn<QString>("action");
    QTest::addColumn<bool>("saves");
    QTest::addColumn<QString>("said");
    QTest::newRow("stop") << QStringLiteral("stopAction") << true
                          << QStringLiteral("after this update, with a checkpoint; press Stop again to kill");
    QTest::newRow("stop without saving") << QStringLiteral("stopUnsavedAction") << false
                                         << QStringLiteral("after this micro-step; press Stop again to kill");
  }
  void stop_saves_and_stop_without_saving_does_not() {
    QFETCH(const QString, action);
    QFETCH(const bool, saves);
    QFETCH(const QString, said);
    RunningStudio studio("micro_ms=20");
    studio.action(action.toUtf8().constData())->trigger();
    QCOMPARE(studio.control->state(), RunState::stopping);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QCOMPARE(studio.control->run()->outcome().outcome, QStringLiteral("stopped"));
    const QDir checkpoints(studio.control->run()->folder() + QStringLiteral("/checkpoints"));
    QCOMPARE(!checkpoints.entryList({QStringLiteral("step-*")}, QDir::Dirs).isEmpty(), saves);
    // As the supervisor puts it, and as the status line says it.
    const EventLogModel& log = *studio.library->log();
    QString told;
    for (int row = 0; row < log.rowCount(); ++row)
      if (log.textOf(row).contains(QStringLiteral("State: stopping, "))) told = log.textOf(row);
    const QString detail = told.section(QStringLiteral("State: stopping, "), 1);
    RunSeries stopping(QStringLiteral("made"), 0);
    stopping.append({{supervisor_rank, 1, 0, StateChanged{.state = "stopping", .detail = detail.toStdString()}}});
    QCOMPARE(stateSentence(stopping, RunState::stopping), said);
    // Unknown before the supervisor has answered.
    QCOMPARE(stateSentence(RunSeries(QStringLiteral("asked"), 0), RunState::stopping),
             QStringLiteral("press Stop again to kill"));
  }

  void a_stopped_run_does_not_look_finished() {
    const auto pictureOf = [](const char* outcome, RunState* tone) {
      const MadeRun made{.updates = 5};
      RunSeries run(QStringLiteral("made"), 0);
      run.setPlan(made.plan());
      run.append(made.events(5));
      run.append({{supervisor_rank, 9, MadeRun::ns(9.0), RunFinished{.outcome = outcome, .updates = 5, .loss = 1.0}}});
      StatusRow row;
      row.refresh(&run, RunState::finished, RunHost::here, QStringLiteral("shm"));
      const auto* chip = row.findChild<StateChip*>();
      *tone = chip->state();
      RunTableModel table;
      table.addRun(&run);
      return table.index(0, RunTableModel::nameColumn).data(RunTableModel::iconNameRole).toString();
    };
    RunState stopped = RunState::failed, finished = RunState::failed;
    QCOMPARE(pictureOf("stopped", &stopped), QStringLiteral("stop"));
    QCOMPARE(pictureOf("finished", &finished), stateIconName(RunState::finished));
    QCOMPARE(stopped, RunState::idle);
    QCOMPARE(finished, RunState::finished);
    QVERIFY(stateColor(lightColors(), stopped) != stateColor(lightColors(), finished));
  }

  void one_update_is_no_plural() {
    const auto sentence = [](std::int64_t updates) {
      RunSeries run(QStringLiteral("made"), 0);
      run.append({{supervisor_rank, 1, 0, RunFinished{.outcome = "finished", .updates = updates, .loss = 2.0}}});
      return stateSentence(run, RunState::finished);
    };
    QVERIFY2(sentence(1).startsWith(QStringLiteral("1 update,")), qPrintable(sentence(1)));
    QVERIFY2(sentence(2).startsWith(QStringLiteral("2 updates,")), qPrintable(sentence(2)));
    const QString logged = eventSentence({supervisor_rank, 1, 0, RunFinished{.outcome = "finished", .updates = 1}});
    QVERIFY2(logged.contains(QStringLiteral("after 1 update,")), qPrintable(logged));
  }

  void an_early_end_says_why() {
    const RunEvent end{supervisor_rank, 1, 0,
                       RunFinished{.outcome = "finished",
                                   .updates = 120,
                                   .loss = 2.0,
                                   .reason = "Finished after update 120 of 300: why",
                                   .seconds = 3.0}};
    RunSeries run(QStringLiteral("made"), 0);
    run.append({end});
    QCOMPARE(stateSentence(run, RunState::finished), QStringLiteral("after update 120 of 300: why"));
    QVERIFY2(eventSentence(end).startsWith(QStringLiteral("Finished after update 120 of 300: why. Loss 2")),
             qPrintable(eventSentence(end)));
    const QString saved =
        eventSentence({0, 1, 0, CheckpointDone{.update = 90, .path = "checkpoints/step-90", .best_loss = 2.31}});
    QVERIFY2(saved.endsWith(QStringLiteral("step-90. The best so far: validation loss 2.310.")), qPrintable(saved));
  }

  void steps_one_micro_step_at_a_time() {
    RunningStudio studio("micro_ms=20");
    studio.press(Qt::Key_F11);  // running: pauses first
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    const auto done = [&studio] { return studio.control->ranks().ranks().at(0).micro_step; };
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->ranks().ranks().at(1).micro_step, done(), patience_ms);
    const std::int64_t before = done();
    studio.press(Qt::Key_F11);
    QTRY_COMPARE_WITH_TIMEOUT(done(), before + 1, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    studio.press(Qt::Key_F11, Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(done() >= before + 1 && done() % 4 == 0, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QCOMPARE(studio.control->ranks().ranks().at(0).filled, 4);
    studio.endRun();
  }

  void a_second_stop_kills() {
    // Rank 1 makes no progress after micro-step 5, so that a stop is never carried out.
    OpenStudio studio(smallSpec(10'000), "micro_ms=5,stall=1@5");
    studio.press(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run() && studio.control->run()->last().microStep >= 4, patience_ms);
    studio.press(Qt::Key_F5, Qt::ShiftModifier);
    QCOMPARE(studio.control->state(), RunState::stopping);
    studio.press(Qt::Key_F5, Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
  }

  void a_spec_with_errors_does_not_start() {
    RunSpec spec = smallSpec();
    spec.schedule.kind = ScheduleKind::linear;
    spec.schedule.min_lr = 2.0 * spec.optimizer.lr;
    OpenStudio studio(spec);
    QSignalSpy refused(studio.control.get(), &RunControl::refused);
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(refused.count(), 1, patience_ms);
    QCOMPARE(studio.control->state(), RunState::idle);
    QVERIFY(studio.find("messageBar")->isVisible());
    const QString said = studio.find<MessageBar>("messageBar")->text();
    QVERIFY2(said.contains(QStringLiteral("Lowest rate")), qPrintable(said));
    // The field that must be mended has the focus.
    QVERIFY(QApplication::focusWidget());
    QVERIFY2(QApplication::focusWidget()->objectName().startsWith(QStringLiteral("field.")),
             qPrintable(QApplication::focusWidget()->objectName()));
  }

  void the_window_panel_speaks_of_one_moment() {
    // A window of 92 ms is no divisor or multiple of the panel's interval, so that it is met at all its moments.
    RunningStudio studio("micro_ms=23");
    auto* count = studio.find<QLabel>("windowCount");
    auto* phase = studio.find<QLabel>("windowPhase");
    QTRY_COMPARE_WITH_TIMEOUT(phase->text(), QStringLiteral("Accumulating"), patience_ms);
    QSet<QString> seen;
    const auto fits = [&] {
      seen.insert(phase->text());
      const bool full = count->text().startsWith(QStringLiteral("4 of 4"));
      return full != (phase->text() == QStringLiteral("Accumulating"));
    };
    const qint64 updates = studio.control->run()->last().update + 20;
    const auto enough = [&] {
      return studio.control->run()->last().update >= updates && seen.size() > 1 &&
             seen.contains(QStringLiteral("Accumulating"));
    };
    QTRY_VERIFY2_WITH_TIMEOUT(!fits() || enough(), qPrintable(QStringList(seen.values()).join(QStringLiteral(", "))),
                              patience_ms);
    QVERIFY2(fits(), qPrintable(count->text() + QStringLiteral(", ") + phase->text()));
    studio.endRun();
  }

  void without_a_run_the_status_row_speaks_of_the_set_up() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    auto* status = studio.find<StatusRow>("statusRow");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Finished"), patience_ms);
    studio.find<RunsPanel>("runsPanel")->showOnly({});  // as a lesson does that is opened or reset
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Ready"), patience_ms);
    QCOMPARE(status->sentence(), QStringLiteral("press F5 to run"));
    studio.set("schedule.kind", std::string("linear"));
    studio.set("schedule.min_lr", 2.0 * studio.document.spec().optimizer.lr);
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Not ready"), patience_ms);
    QCOMPARE(status->sentence(), studio.find<QLabel>("arithmeticLine")->text());
    studio.document.undoStack()->undo();
    QTRY_COMPARE_WITH_TIMEOUT(status->word(), QStringLiteral("Ready"), patience_ms);
  }

  void a_lost_rank_fails_the_run_and_offers_resume() {
    RunSpec spec = smallSpec(50);
    spec.checkpoint.every_updates = 1;
    OpenStudio studio(spec, "micro_ms=5,die=1@9:9");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::failed, patience_ms);
    QVERIFY(studio.action("resumeAction")->isEnabled());
    QWidget* bar = studio.find("messageBar");
    QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible(), patience_ms);
    auto* action = studio.find<QPushButton>("messageAction");
    QTRY_VERIFY_WITH_TIMEOUT(action->text().startsWith(QStringLiteral("Resume from update")), patience_ms);
    qputenv("ACCRUE_FAKE_RANK", "micro_ms=1");  // this time no rank dies
    QTest::mouseClick(action, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
    QCOMPARE(studio.control->run()->outcome().outcome, QStringLiteral("finished"));
    QCOMPARE(studio.control->run()->last().update, 50);
    QCOMPARE(studio.library->table()->rowCount(), 1);
  }

  void a_pause_after_nan_says_nothing_old() {
    OpenStudio studio(smallSpec(10'000), "micro_ms=5,nan=6");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QWidget* bar = studio.find("messageBar");
    QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible(), patience_ms);
    QVERIFY(studio.find<QLabel>("messageText")->text().contains(QStringLiteral("NaN")));
    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QVERIFY(!bar->isVisible());
    studio.press(Qt::Key_F8);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::paused, patience_ms);
    QVERIFY(!bar->isVisible());
    studio.endRun();
  }

  void a_run_of_another_window_can_be_attached() {
    RunningStudio host("micro_ms=20");

    StudioFixture other(host.home, "micro_ms=20");
    other.window->show();
    auto* table = other.find<QTreeView>("runsTable");
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 1, patience_ms);
    QVERIFY(!other.action("attachAction")->isEnabled());
    table->setCurrentIndex(table->model()->index(0, 0));
    QTRY_VERIFY_WITH_TIMEOUT(other.action("attachAction")->isEnabled(), patience_ms);
    QVERIFY(!other.action("resumeAction")->isEnabled());
    // Its record was read once: what came since is not here.
    auto* status = other.find<StatusRow>("statusRow");
    QTRY_COMPARE_WITH_TIMEOUT(status->sentence(), QStringLiteral("as it was when opened; Attach follows it"),
                              patience_ms);
    other.action("attachAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!status->sentence().contains(QStringLiteral("Attach")), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(other.control->state(), RunState::running, patience_ms);
    QVERIFY(other.control->attached());
    QVERIFY(other.control->controls());
    QVERIFY(!other.action("attachAction")->isEnabled());
    // The set-up is the run's, under its name: nothing was copied.
    QCOMPARE(other.document.spec().accumulation.steps, host.document.spec().accumulation.steps);
    QCOMPARE(other.document.displayName(), other.control->run()->givenName());
    auto* label = other.find<QLabel>("attachedLabel");
    QTRY_COMPARE_WITH_TIMEOUT(label->text(), QStringLiteral("Attached"), patience_ms);
    other.action("pauseAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(host.control->state(), RunState::paused, patience_ms);
    host.control->kill();
    QTRY_VERIFY_WITH_TIMEOUT(!host.control->isLive() && !other.control->isLive(), patience_ms);
  }

  void another_n_holds_from_the_next_window_on() {
    RunningStudio studio("micro_ms=20");
    studio.dialogs.steps_answer = 7;
    studio.press(Qt::Key_N, Qt::ControlModifier | Qt::ShiftModifier);
    QCOMPARE(studio.dialogs.steps_asked_from, 4);
    const RunSeries* run = studio.control->run();
    QTRY_COMPARE_WITH_TIMEOUT(run->steps(), 7, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(run->last().windowSize, 7, patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->ranks().ranks().at(1).window_size, 7, patience_ms);
    QCOMPARE(run->plan()->spec.accumulation.steps, 4);  // what was run stays what was written
    RunTableModel table;
    table.addRun(studio.control->run());
    QCOMPARE(table.index(0, RunTableModel::stepsColumn).data().toString(), QStringLiteral("4 \u2192 7"));
    studio.press(Qt::Key_F5, Qt::ShiftModifier);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
  }

  void a_dialect_with_one_n_offers_no_other() {
    RunSpec spec = smallSpec(10'000);
    spec.accumulation.dialect = Dialect::colossalai;
    OpenStudio studio(spec, "micro_ms=20");
    studio.press(Qt::Key_F5);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::running, patience_ms);
    QVERIFY(!studio.action("setStepsAction")->isEnabled());
    QVERIFY(studio.action("checkpointAction")->isEnabled());
    studio.press(Qt::Key_F5, Qt::ShiftModifier);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::finished, patience_ms);
  }

  void a_run_that_cannot_be_commanded_is_viewed() {
    RunningStudio host("micro_ms=20");
    // Without its socket the run can be read and not asked.
    const QDir sockets(host.home->filePath(QStringLiteral("accrue")));
    const QStringList names = sockets.entryList({QStringLiteral("*.sock")}, QDir::AllEntries | QDir::System);
    QCOMPARE(names.size(), 1);
    QVERIFY(QFile::remove(sockets.filePath(names.first())));

    StudioFixture viewer(host.home, "micro_ms=20");
    viewer.window->show();
    viewer.control->attach(host.control->run()->folder());
    QTRY_COMPARE_WITH_TIMEOUT(viewer.control->state(), RunState::running, patience_ms);
    QVERIFY(viewer.control->attached());
    QVERIFY(!viewer.control->controls());
    QVERIFY2(enabled(viewer).isEmpty(), qPrintable(QStringList(enabled(viewer).values()).join(QLatin1Char(' '))));
    auto* label = viewer.find<QLabel>("attachedLabel");
    QTRY_COMPARE_WITH_TIMEOUT(label->text(), QStringLiteral("Viewing"), patience_ms);
    QVERIFY(label->isVisible());
    viewer.control->stop();
    QCOMPARE(viewer.control->state(), RunState::running);
    host.control->kill();
    QTRY_VERIFY_WITH_TIMEOUT(!host.control->isLive() && !viewer.control->isLive(), patience_ms);
  }

  /// As "accrue-run resume --out" does, before anything is copied.
  void a_branch_keeps_to_the_runs_plug_in_libraries() {
    const auto home = std::make_shared<QTemporaryDir>();
    RunningStudio studio("micro_ms=5", smallSpec(60), home);
    studio.control->stop();
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
    const std::filesystem::path dir = studio.control->run()->folder().toStdString();
    const std::string library = home->filePath(QStringLiteral("mine.so")).toStdString();
    std::ofstream(library) << "another library than the run began with";
    RunOrder order = read_run_order(dir / "plan.json").value();
    order.plugins = {{.file = library, .name = "mine", .sha256 = std::string(64, '0')}};
    std::ofstream(dir / "plan.json") << to_json(order);
    QSignalSpy failed(studio.control.get(), &RunControl::commandFailed);
    studio.action("branchAction")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    const auto said = QString::fromStdString(failed.first().first().value<Error>().text());
    QVERIFY2(said.contains(QStringLiteral("the plug-in library \"mine\" is another than the run began with")),
             qPrintable(said));
    QVERIFY2(said.contains(QStringLiteral("accrue-run resume DIR --plugin FILE")), qPrintable(said));
    QVERIFY(!studio.control->isLive());
    QCOMPARE(QDir(studio.library->runsDir()).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 1);
    // It takes them along though its spec names nothing of them, and one that has moved from where it is now.
    order.plugins.front().sha256 = sha256_of_file(library).value();
    std::ofstream(dir / "plan.json") << to_json(order);
    for (const bool moved : {false, true}) {
      if (moved) {
        order.plugins.front().file = library + ".moved";
        std::filesystem::rename(library, order.plugins.front().file);
      }
      studio.preflight->chooseLibraries(moved ? order.plugins : std::vector<PluginRecord>());
      studio.control->branch(QString::fromStdString(dir.string()));
      QTRY_VERIFY_WITH_TIMEOUT(studio.control->isLive(), patience_ms);
      const std::filesystem::path branch = studio.control->run()->folder().toStdString();
      QVERIFY(branch != dir);
      QVERIFY(read_run_order(branch / "plan.json").value().plugins == order.plugins);
      studio.endRun();
    }
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestStates)

}  // namespace test_states
#include "test_states.moc"
