// SPDX-License-Identifier: GPL-3.0-or-later
// The runs table in the window: what is shown, which run the panels speak of, and what can be done with runs.
#include <QCheckBox>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTextBrowser>
#include <QTimer>
#include <QToolButton>
#include <QToolTip>
#include <QTreeView>
#include <QTreeWidget>

#include "accrue/run/whatif/bug_gallery.h"
#include "live/run_queue.h"
#include "made_run.h"
#include "plots/difference_plot.h"
#include "plots/plot_area.h"
#include "runs/run_swatch_delegate.h"
#include "runs/run_tag.h"
#include "runs/runs_panel.h"
#include "studio_fixture.h"
#include "support/test_program.h"
#include "widgets/message_bar.h"

namespace test_runs_panel {

using namespace accrue;
using namespace accrue::ui;

namespace {

/// A studio whose table has finished runs, the newest first.
class FinishedRuns : public OpenStudio {
 public:
  explicit FinishedRuns(std::vector<std::int64_t> steps = {4, 2}) : OpenStudio(smallSpec(6), "micro_ms=1") {
    for (const std::int64_t n : steps) {
      set("accumulation.steps", n);
      train();
    }
    table = find<QTreeView>("runsTable");
    panel = find<RunsPanel>("runsPanel");
  }
  void train() {
    const int before = library->table()->rowCount();
    QTRY_VERIFY_WITH_TIMEOUT(preflight->isCurrent(), patience_ms);
    action("runAction")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(library->table()->rowCount() == before + 1 && !control->isLive(), patience_ms);
  }
  RunSeries* run(int row) const { return library->table()->run(row); }
  QRect name(int row) const { return table->visualRect(table->model()->index(row, RunTableModel::nameColumn)); }
  void clickEye(int row) {
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, RunSwatchDelegate::eyeRect(name(row)).center());
  }
  void clickName(int row) { QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, name(row).center()); }
  QTreeView* table = nullptr;
  RunsPanel* panel = nullptr;
};

}  // namespace

class TestRunsPanel : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void eyes_decide_what_is_drawn_and_the_focus_does_not() {
    FinishedRuns studio;
    QCOMPARE(studio.panel->shownRuns().size(), 2);
    QCOMPARE(studio.panel->currentRun(), studio.control->run());
    RunSeries* const other = studio.run(studio.run(0) == studio.control->run() ? 1 : 0);
    const int row = studio.library->table()->rowOf(other);
    studio.clickEye(row);
    QCOMPARE(studio.panel->shownRuns(), QList<RunSeries*>{studio.control->run()});
    QCOMPARE(studio.window->plots()->runs(), QList<RunSeries*>{studio.control->run()});
    QCOMPARE(studio.panel->currentRun(), studio.control->run());
    // A run that is only passed is drawn until the focus moves on.
    studio.clickName(row);
    QCOMPARE(studio.panel->currentRun(), other);
    QCOMPARE(studio.panel->shownRuns().size(), 2);
    studio.clickName(1 - row);
    QCOMPARE(studio.panel->shownRuns(), QList<RunSeries*>{studio.control->run()});
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_Space);
    QVERIFY(studio.panel->shownRuns().isEmpty());
    QTest::keyClick(studio.table, Qt::Key_Return);
    QCOMPARE(studio.panel->shownRuns(), QList<RunSeries*>{studio.control->run()});
  }

  void the_eye_of_a_run_that_was_clicked_hides_it() {
    FinishedRuns studio({4});
    studio.clickName(0);
    QCOMPARE(studio.panel->shownRuns().size(), 1);
    studio.clickEye(0);
    QVERIFY(studio.panel->shownRuns().isEmpty());
    // Opened over the start page, it brings the curves.
    studio.action("startPageAction")->trigger();
    QVERIFY(!studio.window->plots()->isVisible());
    studio.clickEye(0);
    QVERIFY(studio.window->plots()->isVisible());
    studio.clickEye(0);
    studio.clickName(0);
    QCOMPARE(studio.panel->shownRuns().size(), 1);
  }

  void hidden_runs_are_called_hidden_and_not_missing() {
    FinishedRuns studio({4});
    const auto said = [&studio] { return studio.window->plots()->emptyText(); };
    studio.clickEye(0);
    QVERIFY(studio.panel->shownRuns().isEmpty());
    QVERIFY2(said().startsWith(QStringLiteral("No run is shown. To show one, click its eye")), qPrintable(said()));
    studio.library->table()->removeRun(studio.run(0));
    QVERIFY2(said().startsWith(QStringLiteral("No run yet.")), qPrintable(said()));
  }

  void columns_that_come_and_go_change_nothing_that_is_shown() {
    FinishedRuns studio;
    auto* differing = studio.find<QCheckBox>("onlyDifferingBox");
    for (const bool on : {true, false}) {
      differing->setChecked(on);
      studio.clickName(0);
      studio.clickName(1);
      QCOMPARE(studio.panel->shownRuns().size(), 2);
      QCOMPARE(studio.window->plots()->runs().size(), 2);
    }
    studio.action("baselineAction")->trigger();
    QVERIFY(studio.library->table()->sectionOf(RunTableModel::changesColumn) > 0);
    QCOMPARE(studio.panel->shownRuns().size(), 2);
    studio.action("baselineAction")->trigger();
    QCOMPARE(studio.library->table()->sectionOf(RunTableModel::changesColumn), -1);
    QCOMPARE(studio.panel->shownRuns().size(), 2);
  }

  void the_table_fits_a_small_window_and_a_tooltip_says_what_is_hidden() {
    FinishedRuns studio;
    const auto hidden = [&] {
      QStringList names;
      for (int section = 0; section < studio.table->header()->count(); ++section)
        if (studio.table->isColumnHidden(section))
          names << studio.table->model()->headerData(section, Qt::Horizontal).toString();
      return names;
    };
    const auto scrolls = [&] { return studio.table->horizontalScrollBar()->maximum(); };
    studio.window->resize(1024 - 8, 600 - 24);
    QTRY_COMPARE_WITH_TIMEOUT(scrolls(), 0, patience_ms);
    QCOMPARE(hidden(), QStringList());
    studio.action("baselineAction")->trigger();
    QVERIFY(studio.library->table()->sectionOf(RunTableModel::changesColumn) > 0);
    QTRY_COMPARE_WITH_TIMEOUT(scrolls(), 0, patience_ms);
    QVERIFY2(hidden().contains(QStringLiteral("Samples/s")), qPrintable(hidden().join(QLatin1Char(','))));
    const QPoint at = studio.name(0).center();
    QHelpEvent help(QEvent::ToolTip, at, studio.table->viewport()->mapToGlobal(at));
    QApplication::sendEvent(studio.table->viewport(), &help);
    for (const QString& name : hidden())
      QVERIFY2(QToolTip::text().contains(name + QStringLiteral(": ")), qPrintable(QToolTip::text()));
    QToolTip::hideText();
    // With room they are there again, and what a user made of a column stays.
    studio.window->resize(1366, 768);
    QTRY_COMPARE_WITH_TIMEOUT(hidden(), QStringList(), patience_ms);
    QCOMPARE(scrolls(), 0);
    studio.action("baselineAction")->trigger();
    studio.table->header()->resizeSection(RunTableModel::nameColumn, 300);
    studio.window->resize(1024 - 8, 600 - 24);
    QTRY_VERIFY_WITH_TIMEOUT(studio.table->columnWidth(RunTableModel::nameColumn) < 300, patience_ms);
    studio.window->resize(1366, 768);
    QTRY_COMPARE_WITH_TIMEOUT(studio.table->columnWidth(RunTableModel::nameColumn), 300, patience_ms);
  }

  void a_name_takes_the_room_that_other_columns_leave() {
    FinishedRuns studio;
    studio.window->resize(1366, 768);
    const QHeaderView* header = studio.table->header();
    const auto left = [&] {
      int widths = 0;
      for (int section = 0; section < header->count(); ++section) widths += header->sectionSize(section);
      return studio.table->viewport()->width() - widths;
    };
    int last = header->count() - 1;
    while (header->isSectionHidden(last)) --last;
    QTRY_COMPARE_WITH_TIMEOUT(left(), 0, patience_ms);
    QVERIFY2(header->sectionSize(last) <= 84, qPrintable(QString::number(header->sectionSize(last))));
    const int name = header->sectionSize(RunTableModel::nameColumn);
    QVERIFY2(name > 300, qPrintable(QString::number(name)));
    // The column gives way when the user widens another one.
    studio.table->header()->resizeSection(RunTableModel::stateColumn, 150);
    QCOMPARE(left(), 0);
    QCOMPARE(header->sectionSize(RunTableModel::nameColumn), name - (150 - 112));
    QCOMPARE(studio.table->horizontalScrollBar()->maximum(), 0);
  }

  void all_panels_speak_of_the_focused_run() {
    FinishedRuns studio;
    for (const int row : {1, 0}) {
      studio.clickName(row);
      const RunSeries* run = studio.run(row);
      const QList<RunTag*> tags = studio.window->findChildren<RunTag*>();
      int speaking = 0;
      QTRY_VERIFY_WITH_TIMEOUT(studio.find("statusRow")->findChild<RunTag*>()->run() == run, patience_ms);
      for (const RunTag* tag : tags) {
        // The inspector reads the ranks of the run that this window hosts, and says whose they are.
        if (studio.find("inspectorDock")->isAncestorOf(tag)) {
          QCOMPARE(tag->run(), studio.control->run());
          continue;
        }
        QVERIFY(!tag->run() || tag->run() == run);
        speaking += tag->run() == run;
      }
      QVERIFY(speaking >= 3);  // window, events, status
      QCOMPARE(studio.window->plots()->focusedRun(), run);
    }
  }

  void the_window_panel_shows_the_last_window_of_a_run_that_ended() {
    FinishedRuns studio;
    for (const int row : {0, 1}) {
      studio.clickName(row);
      QTRY_COMPARE_WITH_TIMEOUT(studio.run(row)->tracker().window(), 6, patience_ms);
      QTRY_COMPARE_WITH_TIMEOUT(studio.find<QLabel>("windowTitle")->text(), QStringLiteral("Update 6"), patience_ms);
      QCOMPARE(studio.run(row)->tracker().ranks().at(0).window_size, studio.run(row)->steps());
    }
  }

  void a_resumed_run_brings_its_spec_unless_that_would_cost_edits() {
    const auto home = std::make_shared<QTemporaryDir>();
    QString folder;
    {
      RunningStudio studio("micro_ms=5", smallSpec(60), home);
      folder = studio.control->run()->folder();
      studio.control->stop();
      QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive(), patience_ms);
      // Stopped is not finished.
      QTRY_COMPARE_WITH_TIMEOUT(studio.find("stateChip")->accessibleName(), QStringLiteral("Stopped"), patience_ms);
    }
    {
      StudioFixture studio(home, "micro_ms=20");
      studio.show();
      studio.set("accumulation.steps", std::int64_t{11});
      QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
      studio.control->resume(folder);
      QPushButton* load = studio.offered("Load the run's spec");
      QVERIFY(load);
      QCOMPARE(studio.document.spec().accumulation.steps, 11);
      load->click();  // the fixture answers that the edits may go
      QCOMPARE(studio.document.spec().accumulation.steps, 4);
      studio.endRun();
    }
    StudioFixture studio(home, "micro_ms=20");
    studio.show();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    studio.control->resume(folder);
    QTRY_VERIFY_WITH_TIMEOUT(studio.document.spec().run.updates == 60, patience_ms);
    studio.endRun();
  }

  void a_deleted_run_can_be_brought_back() {
    FinishedRuns studio;
    studio.clickName(0);
    RunSeries* const run = studio.run(0);
    const QString folder = run->folder();
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_Delete);
    QPushButton* undo = studio.offered("Undo");
    QVERIFY(undo);
    QVERIFY(!QFileInfo::exists(folder));
    QCOMPARE(studio.library->table()->rowCount(), 1);
    QVERIFY(!studio.panel->shownRuns().contains(run));
    undo->click();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 2, patience_ms);
    QVERIFY(QFileInfo::exists(folder));
  }

  void a_deletion_offers_its_undo_over_an_older_message() {
    FinishedRuns studio({4});
    auto* bar = studio.find<MessageBar>("messageBar");
    bar->post({QStringLiteral("older"), RunState::failed, QStringLiteral("An older message"), {}, {}});
    bar->post({QStringLiteral("progress"), RunState::running, QStringLiteral("Run 1 of 2"), {}, {}});
    studio.clickName(0);
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_Delete);
    QVERIFY(studio.offered("Undo"));
    bar->post({QStringLiteral("progress"), RunState::running, QStringLiteral("Run 2 of 2"), {}, {}});
    QVERIFY(studio.offered("Undo"));
    studio.find<QPushButton>("messageAction")->click();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    QCOMPARE(bar->text(), QStringLiteral("Run 2 of 2"));
    bar->withdraw(QStringLiteral("progress"));
    QCOMPARE(bar->text(), QStringLiteral("An older message"));
  }

  void ctrl_z_in_the_table_brings_a_deleted_run_back_and_elsewhere_undoes_an_edit() {
    FinishedRuns studio({4});
    studio.set("accumulation.steps", std::int64_t{7});
    const auto steps = [&] { return studio.document.spec().accumulation.steps; };
    const auto remove = [&] {
      studio.clickName(0);
      studio.table->setFocus();
      QTest::keyClick(studio.table, Qt::Key_Delete);
      QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 0, patience_ms);
    };
    const auto undo = [] { QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier); };
    remove();
    undo();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    QCOMPARE(steps(), 7);
    remove();
    studio.find("setupPanel")->setFocus();
    studio.press(Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(steps(), 4);
    QCOMPARE(studio.library->table()->rowCount(), 0);
  }

  void two_runs_are_compared_and_the_plots_mark_where_they_part() {
    FinishedRuns studio;
    QVERIFY(studio.action("compareRunsAction")->isEnabled());
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_D);
    auto* table = studio.find<QTreeWidget>("compareTable");
    QTRY_VERIFY_WITH_TIMEOUT(table && table->isVisible(), patience_ms);
    const QTreeWidgetItem* keys = table->topLevelItem(0);
    QCOMPARE(keys->childCount(), 1);
    QCOMPARE(keys->child(0)->toolTip(0), QStringLiteral("accumulation.steps"));
    QCOMPARE(QSet<QString>({keys->child(0)->text(1), keys->child(0)->text(2)}),
             QSet<QString>({QStringLiteral("4"), QStringLiteral("2")}));
    QVERIFY(!studio.find<QLabel>("compareSaid")->text().isEmpty());
    // Column two less column one.
    QCOMPARE(studio.find<DifferencePlot>("differencePlot")->accessibleDescription(),
             QStringLiteral("Difference of the losses, %1 \u2212 %2, over samples")
                 .arg(table->headerItem()->text(2), table->headerItem()->text(1)));
  }

  void a_run_alone_is_not_compared_and_the_way_to_a_second_is_told() {
    FinishedRuns studio;
    studio.panel->showOnly({studio.run(0)});
    auto* bar = studio.find<MessageBar>("messageBar");
    const int row = studio.table->currentIndex().row();
    studio.table->setFocus();
    for (const Qt::Key key : {Qt::Key_D, Qt::Key_G}) {
      QTest::keyClick(studio.table, key);
      QVERIFY2(bar->text().contains(QStringLiteral("Ctrl+click")), qPrintable(bar->text()));
      QCOMPARE(studio.table->currentIndex().row(), row);
      QVERIFY(!studio.find("compareTable"));
    }
    studio.library->table()->setBaseline(studio.run(1));
    QVERIFY(!bar->text().contains(QStringLiteral("Ctrl+click")));
    QTest::keyClick(studio.table, Qt::Key_D);
    QTRY_VERIFY_WITH_TIMEOUT(studio.find("compareTable"), patience_ms);
  }

  void what_is_said_of_two_runs_names_them_and_goes_with_them() {
    FinishedRuns studio;
    auto* bar = studio.find<MessageBar>("messageBar");
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_G);
    const QString said = bar->text();
    QVERIFY2(!said.isEmpty(), "the two curves are the fake rank's, which do not part");
    studio.panel->showOnly({studio.run(0)});
    QVERIFY(bar->text() != said);
    // The hint goes with what it was said of.
    QTest::keyClick(studio.table, Qt::Key_D);
    QVERIFY(bar->text().contains(QStringLiteral("Ctrl+click")));
    studio.panel->showOnly({studio.run(1)});
    QVERIFY(!bar->text().contains(QStringLiteral("Ctrl+click")));
    // Texts about curves disappear with them.
    QTest::keyClick(studio.table, Qt::Key_D);
    QVERIFY(bar->text().contains(QStringLiteral("Ctrl+click")));
    studio.action("startPageAction")->trigger();
    QVERIFY(!bar->text().contains(QStringLiteral("Ctrl+click")));
  }

  void a_paired_run_without_a_change_differs_by_exactly_nothing() {
    FinishedRuns studio({4});
    studio.action("pairedRunAction")->trigger();
    auto* sheet = studio.find<QDialog>("compareSheet");
    QTRY_VERIFY_WITH_TIMEOUT((sheet = studio.find<QDialog>("compareSheet")) && sheet->isVisible(), patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && studio.library->table()->rowCount() == 2, patience_ms);
    QCOMPARE(studio.library->table()->baseline(),
             studio.run(0) == studio.control->run() ? studio.run(1) : studio.run(0));
    auto* plot = studio.find<DifferencePlot>("differencePlot");
    QTRY_COMPARE_WITH_TIMEOUT(plot->accessibleName(), QStringLiteral("Difference of the losses: 0 everywhere"),
                              patience_ms);
    QCOMPARE(plot->extent(), 0.0);
    QVERIFY(studio.find<QLabel>("compareSaid")->text().contains(QStringLiteral("equal in every bit")));
    // More than one change is no pair.
    studio.set("accumulation.steps", std::int64_t{2});
    studio.set("run.seed", std::int64_t{77});
    studio.action("pairedRunAction")->trigger();
    QVERIFY(studio.offered("Load the run's spec"));
    QVERIFY(!studio.control->isLive());
  }

  void what_is_queued_is_shown_moved_and_taken_out() {
    RunningStudio studio("micro_ms=5", smallSpec(100'000));
    auto* list = studio.find<QListWidget>("queueRuns");
    QVERIFY(!studio.find("queueList")->isVisible());
    for (const std::int64_t n : {2, 3, 5}) {
      studio.set("run.updates", std::int64_t{3});
      studio.set("accumulation.steps", n);
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      studio.press(Qt::Key_Return, Qt::ControlModifier);
    }
    const auto waiting = [list] {
      QStringList labels;
      for (int row = 0; row < list->count(); ++row) labels << list->item(row)->text().section(QStringLiteral("= "), 1);
      return labels.join(QLatin1Char(' '));
    };
    QCOMPARE(waiting(), QStringLiteral("2 3 5"));
    QVERIFY(studio.find("queueList")->isVisible());
    list->setCurrentRow(2);
    studio.find<QToolButton>("queueUp")->click();
    QCOMPARE(waiting(), QStringLiteral("2 5 3"));
    list->setCurrentRow(0);
    studio.find<QToolButton>("queueRemove")->click();
    QCOMPARE(waiting(), QStringLiteral("5 3"));
    studio.control->kill();
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 3, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(!studio.control->isLive() && !studio.find("queueList")->isVisible(), patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->run()->steps(), 3, patience_ms);
    QTRY_VERIFY_WITH_TIMEOUT(studio.control->run()->outcome().outcome == QLatin1String("finished"), patience_ms);
  }

  void queued_runs_of_one_name_say_what_differs() {
    RunningStudio studio("micro_ms=5");
    auto* list = studio.find<QListWidget>("queueRuns");
    for (const std::int64_t seed : {1, 2}) {
      studio.set("run.seed", seed);
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      studio.press(Qt::Key_Return, Qt::ControlModifier);
    }
    QCOMPARE(list->count(), 2);
    QCOMPARE(list->item(0)->text(), QStringLiteral("test, N = 4, seed = 1"));
    QCOMPARE(list->item(1)->text(), QStringLiteral("test, N = 4, seed = 2"));
    studio.window->findChild<RunQueue*>()->cancel();
    studio.endRun();
  }

  void a_queue_that_only_waits_can_be_cancelled() {
    RunningStudio studio("micro_ms=5");
    auto* queue = studio.window->findChild<RunQueue*>();
    studio.set("accumulation.steps", std::int64_t{2});
    QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
    studio.press(Qt::Key_Return, Qt::ControlModifier);
    QCOMPARE(queue->waiting(), std::size_t{1});
    QSignalSpy done(queue, &RunQueue::finished);
    queue->cancel();
    QVERIFY(!queue->isActive());
    QCOMPARE(done.count(), 1);
    QVERIFY(studio.control->isLive());
    studio.endRun();
    QTRY_VERIFY_WITH_TIMEOUT(studio.action("runAction")->isEnabled(), patience_ms);
  }

  void seeds_are_trained_one_after_another_and_grouped() {
    OpenStudio studio(smallSpec(3), "micro_ms=1");
    studio.dialogs.seeds_answer = 3;
    for (const std::int64_t n : {4, 2}) {
      const int before = studio.library->table()->rowCount();
      studio.set("accumulation.steps", n);
      QTRY_VERIFY_WITH_TIMEOUT(studio.preflight->isCurrent(), patience_ms);
      studio.action("runSeedsAction")->trigger();
      QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), before + 3, patience_ms);
      QTRY_VERIFY_WITH_TIMEOUT(studio.action("runSeedsAction")->isEnabled(), patience_ms);
    }
    studio.action("groupRunsAction")->trigger();
    auto* groups = studio.find<QTreeWidget>("groupsTable");
    QCOMPARE(groups->topLevelItemCount(), 2);
    for (int row = 0; row < 2; ++row) QCOMPARE(groups->topLevelItem(row)->text(1), QStringLiteral("3"));
    QVERIFY2(studio.find<QLabel>("groupsSaid")->text().contains(QStringLiteral("noise")),
             qPrintable(studio.find<QLabel>("groupsSaid")->text()));
  }

  void a_run_whose_folder_is_taken_away_ends_with_a_word_and_no_empty_offer() {
    RunningStudio studio("micro_ms=5");
    const QString folder = studio.control->run()->folder();
    QVERIFY(QDir().rename(folder, folder + QStringLiteral("-moved")));
    QTRY_COMPARE_WITH_TIMEOUT(studio.control->state(), RunState::failed, patience_ms);
    auto* text = studio.find<QLabel>("messageText");
    QTRY_VERIFY_WITH_TIMEOUT(text->text().contains(QStringLiteral("removed or renamed")), patience_ms);
    QVERIFY(!studio.find("messageAction")->isVisible());
  }

  void f2_renames_a_run_in_its_row() {
    FinishedRuns studio({4});
    studio.clickName(0);
    studio.table->setFocus();
    QTest::keyClick(studio.table, Qt::Key_F2);
    auto* editor = studio.table->viewport()->findChild<QLineEdit*>();
    QVERIFY(editor);
    editor->setText(QStringLiteral("the first"));
    QTest::keyClick(editor, Qt::Key_Return);
    QTRY_COMPARE_WITH_TIMEOUT(studio.run(0)->name(), QStringLiteral("the first"), patience_ms);
    studio.find<QLineEdit>("runsFilter")->setText(QStringLiteral("nothing like it"));
    QCOMPARE(studio.table->model()->rowCount(), 1);  // it has the focus
  }

  void a_filter_that_finds_nothing_says_so_and_keeps_the_focused_run() {
    FinishedRuns studio;
    RunSeries* const focused = studio.panel->currentRun();
    auto* filter = studio.find<QLineEdit>("runsFilter");
    auto* none = studio.find<QLabel>("noRuns");
    QVERIFY(!none->isVisible());
    filter->setText(QStringLiteral("no such run"));
    QVERIFY(none->isVisible() && !studio.table->isVisible());
    QVERIFY2(none->text().startsWith(QStringLiteral("No run matches \u201cno such run\u201d")),
             qPrintable(none->text()));
    QCOMPARE(studio.panel->currentRun(), focused);
    filter->clear();
    QVERIFY(studio.table->isVisible());
    QCOMPARE(studio.panel->currentRun(), focused);
  }

  void a_context_menu_acts_on_its_row_and_leaves_the_focus_where_it_is() {
    FinishedRuns studio;
    RunSeries* const focused = studio.panel->currentRun();
    const int row = studio.run(0) == focused ? 1 : 0;
    RunSeries* const other = studio.run(row);
    bool opened = false;
    const auto choose = [&](const char* command) {
      const QPoint at = studio.name(row).center();
      QTest::mouseClick(studio.table->viewport(), Qt::RightButton, {}, at);
      QTimer poll;
      connect(&poll, &QTimer::timeout, &poll, [&] {
        auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
        if (!menu) return;
        poll.stop();
        opened = menu->actions().contains(studio.action(command));
        menu->setActiveAction(studio.action(command));
        QTest::keyClick(menu, Qt::Key_Return);
      });
      poll.start(0);
      QContextMenuEvent event(QContextMenuEvent::Mouse, at, studio.table->viewport()->mapToGlobal(at));
      QApplication::sendEvent(studio.table->viewport(), &event);
      QVERIFY(opened);
    };
    choose("baselineAction");
    QCOMPARE(studio.library->table()->baseline(), other);
    choose("starRunAction");
    QVERIFY(other->notes().starred && !focused->notes().starred);
    QCOMPARE(studio.panel->currentRun(), focused);
    QCOMPARE(studio.panel->selectedRuns(), QList<RunSeries*>{other});
    choose("renameRunAction");
    auto* editor = studio.table->viewport()->findChild<QLineEdit*>();
    QVERIFY(editor);
    editor->setText(QStringLiteral("the other"));
    QTest::keyClick(editor, Qt::Key_Return);
    QTRY_COMPARE_WITH_TIMEOUT(other->name(), QStringLiteral("the other"), patience_ms);
    choose("deleteRunAction");
    QTRY_COMPARE_WITH_TIMEOUT(studio.library->table()->rowCount(), 1, patience_ms);
    QCOMPARE(studio.run(0), focused);
    QCOMPARE(studio.panel->currentRun(), focused);
  }

  void the_focused_run_is_marked_where_the_filter_does_not_match_it() {
    FinishedRuns studio;
    RunSeries* const focused = studio.panel->currentRun();
    const RunSeries* other = studio.run(studio.run(0) == focused ? 1 : 0);
    studio.find<QLineEdit>("runsFilter")->setText(other->name().section(QLatin1Char(' '), 1, 1));
    const auto marks = [&](int row) {
      return studio.table->model()->index(row, RunTableModel::nameColumn).data(RunTableModel::marksRole).toStringList();
    };
    QCOMPARE(studio.table->model()->rowCount(), 2);
    QCOMPARE(marks(studio.run(0) == focused ? 0 : 1), QStringList{QStringLiteral("not matching")});
    QCOMPARE(marks(studio.run(0) == focused ? 1 : 0), QStringList());
  }

  void f1_in_the_runs_table_explains_its_columns() {
    FinishedRuns studio;
    studio.table->setFocus();
    studio.press(Qt::Key_F1);
    auto* words = studio.find<QListWidget>("glossaryWords");
    QVERIFY(words && words->isVisible());
    QCOMPARE(words->currentItem()->text(), QStringLiteral("runs table"));
    const QString meaning = studio.find<QTextBrowser>("glossaryMeaning")->toPlainText();
    QVERIFY2(!meaning.contains(QLatin1Char('*')), qPrintable(meaning));
    for (int section = 0; section < studio.table->model()->columnCount(); ++section) {
      const QString column = studio.table->model()->headerData(section, Qt::Horizontal).toString();
      QVERIFY2(meaning.contains(column), qPrintable(column));
    }
  }

  void names_and_verdicts_get_their_room_before_weights() {
    FinishedRuns studio;
    RunSeries* run = studio.library->addLive(studio.home->filePath(QStringLiteral("weighed")),
                                             accrue::test::MadeRun{}.plan(), RunLibrary::Past::keep);
    run->append(
        {{0, 1, 1, Update{.update = 1, .micro_step = 4, .loss = 1.0, .weights = {0.0952785812, -0.433678219}}}});
    run->append({{0, 2, 2, ExactnessCheck{.update = 1, .relative = 3.0, .verdict = "not", .reason = "divisor"}}});
    studio.panel->showAlso(run);
    run->setName(QStringLiteral("Eight points, learning rate = 0.001"));
    const auto section = [&](RunTableModel::Column column) { return studio.library->table()->sectionOf(column); };
    QTRY_VERIFY_WITH_TIMEOUT(section(RunTableModel::weightsColumn) > 0 && section(RunTableModel::exactColumn) > 0,
                             patience_ms);
    const auto fits = [&](RunTableModel::Column column) {
      const QModelIndex cell = studio.table->model()->index(studio.library->table()->rowOf(run), section(column));
      return studio.table->columnWidth(section(column)) >= studio.table->sizeHintForIndex(cell).width();
    };
    studio.window->resize(1366, 768);
    for (const auto column : {RunTableModel::nameColumn, RunTableModel::exactColumn, RunTableModel::stateColumn})
      QTRY_VERIFY2_WITH_TIMEOUT(fits(column), qPrintable(QString::number(column)), patience_ms);
    QCOMPARE(studio.table->horizontalScrollBar()->maximum(), 0);
    studio.window->resize(1024 - 8, 600 - 24);
    QTRY_VERIFY_WITH_TIMEOUT(studio.window->width() < 1024 && fits(RunTableModel::exactColumn), patience_ms);
    QVERIFY(fits(RunTableModel::stateColumn));
    QVERIFY(studio.table->columnWidth(RunTableModel::nameColumn) >= 220);
    QTRY_COMPARE_WITH_TIMEOUT(studio.table->horizontalScrollBar()->maximum(), 0, patience_ms);
  }

  void a_click_on_a_run_brings_the_plots_over_the_start_page() {
    FinishedRuns studio;
    const QWidget* start = studio.find("startPage");
    for (const int row : {0, 1}) {
      studio.action("startPageAction")->trigger();
      QVERIFY(start->isVisible());
      studio.clickName(row);
      QVERIFY(!start->isVisible());
    }
  }

  void weights_are_shown_to_their_last_digit() {
    FinishedRuns studio;
    studio.window->resize(1366, 768);
    RunSeries* run = studio.library->addLive(studio.home->filePath(QStringLiteral("weighed")),
                                             accrue::test::MadeRun{}.plan(), RunLibrary::Past::keep);
    run->append({{0, 1, 1, Update{.update = 1, .micro_step = 4, .loss = 1.0, .weights = {0.5, 0.5}}}});
    studio.panel->showAlso(run);
    run->append(
        {{0, 2, 2, Update{.update = 2, .micro_step = 8, .loss = 1.0, .weights = {0.0952785812, -0.433678219}}}});
    const auto section = [&] { return studio.library->table()->sectionOf(RunTableModel::weightsColumn); };
    QTRY_VERIFY_WITH_TIMEOUT(section() > 0, patience_ms);
    const QAbstractItemView* view = studio.table;
    QTRY_VERIFY_WITH_TIMEOUT(studio.table->columnWidth(section()) >= view->sizeHintForColumn(section()), patience_ms);
    QVERIFY(!studio.table->isColumnHidden(section()));
    QCOMPARE(studio.table->horizontalScrollBar()->maximum(), 0);
  }

  void a_run_that_was_fixed_is_not_called_after_its_bug() {
    OpenStudio studio(gallery_spec(Bug::mean_of_means));
    auto* fix = studio.find<QPushButton>("fixBug");
    QTRY_VERIFY_WITH_TIMEOUT(fix->isEnabled(), patience_ms);
    fix->click();
    QCOMPARE(QString::fromStdString(studio.document.spec().run.name), QStringLiteral("Mean of means, fixed"));
    studio.endRun();
  }
};

ACCRUE_WINDOW_TEST_MAIN(TestRunsPanel)

}  // namespace test_runs_panel
#include "test_runs_panel.moc"
