// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>
#include <memory>
#include <random>

#include "accrue/run/record/run_store.h"
#include "kit/number_text.h"
#include "made_run.h"
#include "runs/run_table_model.h"
#include "series/run_text.h"
#include "support/places.h"
#include "support/test_program.h"

namespace test_run_table {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

std::unique_ptr<RunSeries> makeRun(int number, const MadeRun& made) {
  auto run = std::make_unique<RunSeries>(QStringLiteral("run-%1").arg(number), number);
  run->setPlan(made.plan());
  return run;
}

/// A table of runs that is checked against the rules of models.
struct CheckedTable : RunTableModel {
  CheckedTable() = default;
  explicit CheckedTable(std::initializer_list<MadeRun> made) {
    for (const MadeRun& each : made) {
      runs.push_back(makeRun(static_cast<int>(runs.size()), each));
      addRun(runs.back().get());
    }
  }
  RunSeries& at(std::size_t i) const { return *runs[i]; }
  std::vector<std::unique_ptr<RunSeries>> runs;

 private:
  QAbstractItemModelTester tester_{this, QAbstractItemModelTester::FailureReportingMode::Fatal};
};

QString cell(const RunTableModel& model, int row, int column) {
  return model.index(row, column).data().toString();
}

QString cell(const RunTableModel& model, int row, RunTableModel::Column column) {
  return cell(model, row, model.sectionOf(column));
}

/// Without the columns that only some runs have.
constexpr int plainColumns = RunTableModel::fixedColumns - 4;

}  // namespace

class TestRunTable : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_branch_says_where_it_began() {
    CheckedTable model{{.updates = 20}, {.updates = 20}};
    model.at(0).setName(QStringLiteral("the first"));
    model.at(0).setFolder(QStringLiteral("/runs/first"));
    model.at(1).setFolder(QStringLiteral("/runs/second"));
    const RunStarted began{.run = "run-1", .resumed = true, .resumed_update = 12, .branched_from = "run-0"};
    model.at(1).append({{supervisor_rank, 0, 0, began}});
    RunStarted later = began;
    later.resumed_update = 16;
    model.at(1).append({{supervisor_rank, 1, 0, later}});
    const auto tip = [&](int row) {
      return model.index(row, RunTableModel::nameColumn).data(Qt::ToolTipRole).toString();
    };
    QCOMPARE(tip(0), QStringLiteral("/runs/first"));
    QCOMPARE(tip(1), QStringLiteral("/runs/second\nfrom the first, update 12"));
  }

  void runs_of_one_name_are_told_apart_wherever_they_are_named() {
    CheckedTable model{{.steps = 4}, {.steps = 16}, {.steps = 16}};
    for (const auto& run : model.runs) run->setName(QStringLiteral("Demo"));
    // The last row began first, and gives its name to no later run.
    QTRY_COMPARE(model.at(2).name(), QStringLiteral("Demo, N = 16"));
    QCOMPARE(cell(model, 0, RunTableModel::nameColumn), QStringLiteral("Demo, N = 4"));
    QCOMPARE(cell(model, 1, RunTableModel::nameColumn), QStringLiteral("Demo, N = 16 (2)"));
    const QModelIndex second = model.index(1, model.sectionOf(RunTableModel::nameColumn));
    QCOMPARE(second.data(Qt::EditRole).toString(), QStringLiteral("Demo"));
    model.at(0).setNotes({.name = QStringLiteral("short"), .text = {}, .tags = {}});
    QCOMPARE(model.at(0).name(), QStringLiteral("short"));
    model.removeRun(&model.at(1));
    QCoreApplication::processEvents();
    QCOMPARE(model.at(2).name(), QStringLiteral("Demo, N = 16"));  // a name once given stays
    QCOMPARE(model.at(1).name(), QStringLiteral("Demo"));          // in no table it is as it was given
  }

  void a_stop_says_whether_it_is_saved() {
    RunSeries run(QStringLiteral("run-0"), 0);
    run.append({{supervisor_rank, 0, 0, CheckpointDone{.update = 10}},
                {supervisor_rank, 1, 0, RunFinished{.outcome = "stopped", .updates = 15}}});
    QVERIFY(!stateSentence(run, RunState::finished).contains(QStringLiteral("saved")));
    run.append({{supervisor_rank, 2, 0, CheckpointDone{.update = 15}}});
    QCOMPARE(stateSentence(run, RunState::finished), QStringLiteral("by you after update 15; saved, Resume continues"));
  }

  void a_stop_says_by_whom() {
    RunSeries run(QStringLiteral("run-0"), 0);
    run.append(
        {{supervisor_rank, 0, 0, RunFinished{.outcome = "stopped", .updates = 15, .reason = "Stopped by a signal"}}});
    QCOMPARE(stateSentence(run, RunState::finished), QStringLiteral("by a signal after update 15"));
  }

  void shows_set_up_and_results() {
    CheckedTable model;
    const MadeRun made{.steps = 16, .updates = 20};
    const auto run = makeRun(3, made);
    model.addRun(run.get());
    model.addRun(run.get());
    QCOMPARE(model.rowCount(), 1);
    std::vector<RunEvent> events = made.events(12);
    events.push_back(MadeRun::state("running"));
    run->append(events);
    QCOMPARE(cell(model, 0, RunTableModel::stateColumn), QStringLiteral("Running"));
    QCOMPARE(cell(model, 0, RunTableModel::nameColumn), QStringLiteral("N=16"));
    QCOMPARE(cell(model, 0, RunTableModel::stepsColumn), QStringLiteral("16"));
    QCOMPARE(cell(model, 0, RunTableModel::microBatchColumn), QStringLiteral("4"));
    QCOMPARE(cell(model, 0, RunTableModel::ranksColumn), QStringLiteral("2"));
    QCOMPARE(cell(model, 0, RunTableModel::updatesColumn), QStringLiteral("12 / 20"));
    QVERIFY(!cell(model, 0, RunTableModel::lossColumn).isEmpty());
    QVERIFY(!cell(model, 0, RunTableModel::rateColumn).isEmpty());
    QCOMPARE(model.index(0, 0).data(RunTableModel::colorIndexRole).toInt(), 3);
    QVERIFY(model.index(0, RunTableModel::lossColumn)
                .data(Qt::AccessibleTextRole)
                .toString()
                .startsWith(QStringLiteral("Loss: ")));
  }

  void a_run_whose_events_are_not_read_has_its_pace_and_its_verdict_from_its_summary() {
    CheckedTable model;
    RunSeries run(QStringLiteral("old"), 0);
    model.addRun(&run);
    RunSummary summary;
    summary.state = "finished";
    summary.updates = 10;
    summary.samples = 320;
    summary.seconds = 12.0;
    summary.paused_seconds = 4.0;
    summary.exactness = ExactnessCheck{.update = 3, .relative = 0.25, .verdict = "not"};
    run.setSummary(summary);
    QCOMPARE(cell(model, 0, RunTableModel::rateColumn), QStringLiteral("40.0"));
    QVERIFY(model.sectionOf(RunTableModel::exactColumn) > 0);
    QVERIFY(cell(model, 0, RunTableModel::exactColumn).contains(QStringLiteral("not exact")));
    // An earlier version told neither.
    summary.paused_seconds = 0.0;
    summary.exactness.reset();
    run.setSummary(summary);
    QCOMPARE(model.sectionOf(RunTableModel::exactColumn), -1);
  }

  void the_pace_of_an_ended_run_is_its_mean() {
    CheckedTable model;
    const MadeRun made{.updates = 40};
    const auto run = makeRun(0, made);
    model.addRun(run.get());
    run->append(made.events(40));
    std::vector<RunEvent> slow = {
        {0, 1, 1,
         Update{
             .update = 41, .micro_step = 1000, .samples = run->last().samples + 32, .loss = 1.0, .seconds = 1000.0}}};
    run->append(slow);
    run->append({MadeRun::state("finished")});
    QCOMPARE(cell(model, 0, RunTableModel::rateColumn),
             valueText(static_cast<double>(run->last().samples) / 1000.0, 3));
  }

  void the_newest_run_stands_first_whenever_it_is_added() {
    CheckedTable model;
    QStringList order;
    for (const char* started : {"2026-11-02T08:00:00Z", "2026-11-03T08:00:00Z", "2026-11-01T08:00:00Z"}) {
      model.runs.push_back(makeRun(static_cast<int>(model.runs.size()), {.updates = 3}));
      model.runs.back()->setStartedAt(QLatin1String(started));
      model.addRun(model.runs.back().get());
    }
    for (const RunSeries* run : model.RunTableModel::runs()) order << run->startedAt().left(10);
    QCOMPARE(order,
             (QStringList{QStringLiteral("2026-11-03"), QStringLiteral("2026-11-02"), QStringLiteral("2026-11-01")}));
    // Runs of one second stand in the order of their starts, whatever their folders' names are.
    CheckedTable quick;
    for (const char* started : {"09.250Z", "09.750Z", "09.500Z"}) {
      quick.runs.push_back(makeRun(static_cast<int>(quick.runs.size()), {.updates = 3}));
      RunSeries& run = *quick.runs.back();
      run.setFolder(QStringLiteral("/runs/%1").arg(QLatin1Char(quick.runs.size() == 2 ? 'a' : 'b')));
      run.setStartedAt(QStringLiteral("2026-11-02T08:00:%1").arg(QLatin1String(started)));
      quick.addRun(&run);
    }
    order.clear();
    for (const RunSeries* run : quick.RunTableModel::runs()) order << run->startedAt().mid(17);
    QCOMPARE(order, (QStringList{QStringLiteral("09.750Z"), QStringLiteral("09.500Z"), QStringLiteral("09.250Z")}));
    // A resumed run keeps its place.
    model.at(2).append(
        {{supervisor_rank, 0, 0, RunStarted{.run = "run-2", .started_at = "2026-11-09", .resumed = true}}});
    QCOMPARE(model.at(2).startedAt().left(10), QStringLiteral("2026-11-01"));
  }

  void the_eye_shows_and_hides_a_run() {
    CheckedTable model{{.updates = 3}};
    const QModelIndex name = model.index(0, RunTableModel::nameColumn);
    QVERIFY(name.flags().testFlag(Qt::ItemIsUserCheckable));
    QCOMPARE(name.data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::Unchecked));
    QSignalSpy shown(&model.at(0), &RunSeries::shownChanged);
    QVERIFY(model.setData(name, Qt::Checked, Qt::CheckStateRole));
    QCOMPARE(model.at(0).shown(), Shown::yes);
    QCOMPARE(shown.count(), 1);
    QVERIFY(model.setData(name, Qt::Unchecked, Qt::CheckStateRole));
    QCOMPARE(model.at(0).shown(), Shown::no);
    model.at(0).setShown(Shown::whileFocused);
    QCOMPARE(name.data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::PartiallyChecked));
  }

  /// A global batch, or the memory of a rank, gives others than the spec: its 4 x 4 may be trained as 16 x 1.
  void the_plan_says_n_and_micro_batch() {
    CheckedTable model{{.steps = 16, .microBatch = 1}};
    RunPlan plan = *model.at(0).plan();
    plan.spec.accumulation.steps = plan.spec.accumulation.micro_batch = 4;
    plan.spec.run.name.clear();
    RunSeries run(QStringLiteral("fitted"), 1);
    run.setPlan(plan);
    // One that is listed, and not read, has them from its summary.
    RunSeries listed(QStringLiteral("listed"), 2);
    RunSummary summary;
    summary.spec = plan.spec;
    summary.steps = 16;
    summary.micro_batch = 1;
    listed.setSummary(summary);
    for (RunSeries* each : {&run, &listed}) {
      model.addRun(each);
      const int row = model.rowOf(each);
      QCOMPARE(cell(model, row, RunTableModel::stepsColumn), QStringLiteral("16"));
      QCOMPARE(cell(model, row, RunTableModel::microBatchColumn), QStringLiteral("1"));
      QCOMPARE(each->givenName(), QStringLiteral("gpt N=16 2 ranks"));
      const QModelIndex name = model.index(row, model.sectionOf(RunTableModel::nameColumn));
      QVERIFY(name.data(RunTableModel::marksRole).toStringList().isEmpty());
      QVERIFY(!name.data(Qt::ToolTipRole).toString().contains(QStringLiteral("changed")));
      QCOMPARE(each->plannedSpec()->accumulation.steps, 16);
      QCOMPARE(each->plannedSpec()->accumulation.micro_batch, 1);
    }
    run.append({{supervisor_rank, 0, 0, StepsChanged{.update = 1, .steps = 8}}});
    const int row = model.rowOf(&run);
    QCOMPARE(cell(model, row, RunTableModel::stepsColumn), QStringLiteral("16 \u2192 8"));
    model.removeRun(&run);
    model.removeRun(&listed);
  }

  void a_bug_and_a_changed_n_mark_a_run() {
    CheckedTable model{{.steps = 4}};
    const QModelIndex name = model.index(0, RunTableModel::nameColumn);
    QVERIFY(name.data(RunTableModel::marksRole).toStringList().isEmpty());
    RunPlan buggy = *model.at(0).plan();
    buggy.spec.teaching.bug = Bug::mean_of_means;
    model.at(0).setPlan(buggy);
    model.at(0).append({{supervisor_rank, 0, 0, StepsChanged{.update = 1, .steps = 8}}});
    QCOMPARE(name.data(RunTableModel::marksRole).toStringList(),
             (QStringList{QStringLiteral("bug"), QStringLiteral("N changed")}));
    QVERIFY(name.data(Qt::AccessibleTextRole).toString().endsWith(QStringLiteral("bug, N changed")));
    QVERIFY(name.data(Qt::ToolTipRole).toString().contains(QStringLiteral("mean_of_means")));
  }

  void numbers_are_right_aligned_in_differing_columns_too() {
    CheckedTable model{{.steps = 4}, {.steps = 16}};
    RunSpec other = *model.at(1).spec();
    other.accumulation.dialect = Dialect::llm;
    model.at(1).setSpec(other);
    model.setOnlyDiffering(true);
    const int dialect = static_cast<int>(model.differingKeys().indexOf(QStringLiteral("accumulation.dialect")));
    const int steps = static_cast<int>(model.differingKeys().indexOf(QStringLiteral("accumulation.steps")));
    QVERIFY(dialect >= 0 && steps >= 0);
    const auto aligned = [&](int key) {
      const int section = model.sectionOf(RunTableModel::updatesColumn) + 1 + key;
      const QVariant cell = model.index(0, section).data(Qt::TextAlignmentRole);
      return cell == model.headerData(section, Qt::Horizontal, Qt::TextAlignmentRole) && cell.isValid();
    };
    QVERIFY(aligned(steps));
    QVERIFY(!aligned(dialect));
  }

  void a_row_changes_without_a_reset() {
    const MadeRun made;
    CheckedTable model{made, made};
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
    QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
    model.at(1).append(made.events(4));
    QCOMPARE(reset.count(), 0);
    QCOMPARE(changed.count(), 1);
    QCOMPARE(changed[0][0].toModelIndex().row(), 1);
    QCOMPARE(changed[0][1].toModelIndex().row(), 1);
  }

  void only_differing_columns_are_the_differing_keys() {
    CheckedTable model{{.steps = 4}, {.steps = 16}};
    QCOMPARE(model.differingKeys(), QStringList{QStringLiteral("accumulation.steps")});
    model.setOnlyDiffering(true);
    QCOMPARE(model.columnCount(), 6);  // state, name, loss, samples/s, updates and the one difference
    QCOMPARE(model.headerData(5, Qt::Horizontal, RunTableModel::fieldKeyRole).toString(),
             QStringLiteral("accumulation.steps"));
    QVERIFY(!model.headerData(5, Qt::Horizontal).toString().isEmpty());
    QCOMPARE(cell(model, 0, 5), QStringLiteral("4"));
    QCOMPARE(cell(model, 1, 5), QStringLiteral("16"));
    model.setOnlyDiffering(false);
    QCOMPARE(model.columnCount(), plainColumns);
  }

  void differing_columns_follow_the_runs() {
    CheckedTable model{{.steps = 4}, {.steps = 4}};
    model.setOnlyDiffering(true);
    const auto c = makeRun(2, {.steps = 8, .microBatch = 2});
    QCOMPARE(model.columnCount(), 5);
    model.addRun(c.get());
    QCOMPARE(model.columnCount(), 7);
    model.removeRun(c.get());
    QCOMPARE(model.columnCount(), 5);
  }

  void the_selected_runs_are_compared() {
    CheckedTable model{{.steps = 4}, {.steps = 4, .microBatch = 2}, {.steps = 8}};
    QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
    const QString micro = QStringLiteral("accumulation.micro_batch");
    const QString steps = QStringLiteral("accumulation.steps");
    model.setOnlyDiffering(true);
    QCOMPARE(model.differingKeys(), (QStringList{steps, micro}));
    model.setCompared({&model.at(0), &model.at(1)});
    QCOMPARE(model.differingKeys(), QStringList{micro});
    QCOMPARE(model.columnCount(), 6);
    model.setCompared({&model.at(0), &model.at(2)});
    QCOMPARE(model.headerData(5, Qt::Horizontal, RunTableModel::fieldKeyRole).toString(), steps);
    model.setCompared({&model.at(0)});
    QCOMPARE(model.columnCount(), 7);
    model.setOnlyDiffering(false);
    QCOMPARE(model.columnCount(), plainColumns);
    // The table's selection, by which runs are compared, would not outlive a reset.
    QCOMPARE(reset.count(), 0);
  }

  void the_name_of_a_run_is_no_difference() {
    CheckedTable model{{}, {}};
    RunSpec renamed = *model.at(1).spec();
    renamed.run.name = "another";
    model.at(1).setSpec(renamed);
    QVERIFY(model.differingKeys().isEmpty());
  }

  void a_destroyed_run_leaves_the_table() {
    CheckedTable model{{}, {}};
    model.runs.front().reset();
    QCOMPARE(model.rowCount(), 1);
    QCOMPARE(model.run(0), &model.at(1));
    QCOMPARE(model.rowOf(&model.at(1)), 0);
  }

  void sorts_numbers_as_numbers() {
    CheckedTable model{{.steps = 16}, {.steps = 4}};
    const auto steps = [&](int row) {
      return model.index(row, RunTableModel::stepsColumn).data(RunTableModel::sortRole).toLongLong();
    };
    QVERIFY(steps(1) < steps(0));
    model.setOnlyDiffering(true);
    const QVariant left = model.index(0, 5).data(RunTableModel::sortRole);
    QCOMPARE(left.toDouble(), 16.0);
  }

  void last_weights_have_a_column_while_a_shown_run_recorded_them() {
    CheckedTable model{{.steps = 4}, {.steps = 4}};
    RunSeries* const plain = &model.at(0);
    RunSeries* const recorded = &model.at(1);
    const int before = model.columnCount();
    Update update;
    update.update = update.micro_step = 1;
    update.weights = {0.5, 1.427725625};
    recorded->append({{0, 0, 0, update}});
    QCOMPARE(model.columnCount(), before + 1);
    QCOMPARE(cell(model, 1, RunTableModel::weightsColumn), QStringLiteral("0.5, 1.427725625"));
    QCOMPARE(cell(model, 0, RunTableModel::weightsColumn), QString());
    // Results stand together; the pace, which no two runs share, comes after them.
    QCOMPARE(model.sectionOf(RunTableModel::rateColumn), model.sectionOf(RunTableModel::weightsColumn) + 1);
    model.setOnlyDiffering(true);
    QCOMPARE(model.headerData(model.sectionOf(RunTableModel::weightsColumn), Qt::Horizontal).toString(),
             QStringLiteral("Last weights"));
    model.setOnlyDiffering(false);
    QCOMPARE(model.columnCount(), before + 1);
    model.setCompared({plain});
    QCOMPARE(model.columnCount(), before);
    model.setCompared({plain, recorded});
    QCOMPARE(model.columnCount(), before + 1);
    model.removeRun(recorded);
    QCOMPARE(model.columnCount(), before);
  }

  void states_have_words_and_icons() {
    QSet<QString> words;
    for (const RunState state :
         {RunState::idle, RunState::preflight, RunState::starting, RunState::running, RunState::paused,
          RunState::degraded, RunState::restarting, RunState::stopping, RunState::failed, RunState::finished}) {
      words.insert(stateName(state));
      const QString icon = accrue::test::sourcePath("resources/icons/%1.svg").arg(stateIconName(state));
      QVERIFY2(QFile::exists(icon), qPrintable(icon));
    }
    QCOMPARE(words.size(), 10);
  }

  void holds_the_rules_of_models_under_any_order_of_calls() {
    CheckedTable model;
    std::mt19937 random(33);
    std::uniform_int_distribution<int> choice(0, 99);
    std::vector<std::unique_ptr<RunSeries>> runs;
    const MadeRun made{.updates = 3};
    const std::vector<RunEvent> events = made.events(3);
    for (int i = 0; i < 2000; ++i) {
      const int what = choice(random);
      const bool any = !runs.empty();
      const std::size_t which = any ? static_cast<std::size_t>(what) % runs.size() : 0;
      if (what < 30 && runs.size() < 12) {
        runs.push_back(makeRun(i, {.steps = 1 + what % 3, .updates = 3, .microBatch = 1 + what % 2}));
        model.addRun(runs.back().get());
      } else if (what < 45 && any) {
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (what < 55 && any) {
        model.removeRun(runs[which].get());
      } else if (what < 60) {
        model.setOnlyDiffering(!model.onlyDiffering());
      } else if (any) {
        runs[which]->append({events[static_cast<std::size_t>(what) % events.size()]});
      }
      QVERIFY(model.rowCount() <= static_cast<int>(runs.size()));
    }
  }
};

ACCRUE_TEST_MAIN(TestRunTable)

}  // namespace test_run_table
#include "test_run_table.moc"
