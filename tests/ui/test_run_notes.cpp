// SPDX-License-Identifier: GPL-3.0-or-later
// Notes on runs, search, and deletion.
#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "accrue/run/record/run_store.h"
#include "made_run.h"
#include "runs/run_filter.h"
#include "runs/run_library.h"
#include "runs/run_notebook.h"
#include "runs/run_trash.h"
#include "support/test_program.h"

namespace test_run_notes {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

constexpr int patience_ms = 30000;

RunWriter begun(const QString& folder) {
  QDir().mkpath(QFileInfo(folder).absolutePath());
  auto writer = RunWriter::create(folder.toStdString(), "accrue = 1\n[accumulation]\nsteps = 4\n");
  if (!writer) qFatal("%s", writer.error().text().c_str());
  if (!writer->append(MadeRun::started())) qFatal("the event was not stored");
  return std::move(*writer);
}

void ended(const QString& folder) {
  RunWriter writer = begun(folder);
  const RunEvent end{supervisor_rank, 1, 1, RunFinished{.outcome = "finished", .updates = 1}};
  if (!writer.append(end)) qFatal("the end was not stored");
}

/// A library that has listed its folder.
struct Listed {
  explicit Listed(const QString& folder) : library(folder) {
    QSignalSpy refreshed(&library, &RunLibrary::refreshed);
    library.refresh();
    if (!QTest::qWaitFor([&] { return refreshed.count() > 0; }, patience_ms)) qFatal("not listed");
  }
  RunLibrary library;
};

}  // namespace

class TestRunNotes : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(home_.isValid());
    qputenv("XDG_DATA_HOME", home_.filePath(QStringLiteral("data")).toUtf8());
  }

  void notes_outlive_the_studio_and_leave_the_run_folder_alone() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("runs/a"));
    ended(folder);
    const QStringList before = QDir(folder).entryList(QDir::AllEntries | QDir::NoDotAndDotDot);
    const RunNotes notes{QStringLiteral("the good one"), QStringLiteral("after the fix"), {QStringLiteral("lr")}, true};
    {
      RunLibrary library(home.filePath(QStringLiteral("runs")));
      RunNotebook notebook(library.table(), home.filePath(QStringLiteral("notes.json")));
      library.refresh();
      QTRY_VERIFY_WITH_TIMEOUT(library.find(folder), patience_ms);
      notebook.setNotes(library.find(folder), notes);
      QCOMPARE(library.find(folder)->name(), QStringLiteral("the good one"));
    }
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    const RunNotebook notebook(library.table(), home.filePath(QStringLiteral("notes.json")));
    library.refresh();
    QTRY_VERIFY_WITH_TIMEOUT(library.find(folder), patience_ms);
    QCOMPARE(library.find(folder)->notes(), notes);
    QCOMPARE(QDir(folder).entryList(QDir::AllEntries | QDir::NoDotAndDotDot), before);
  }

  void what_a_run_is_called_stays_when_it_is_read_again_alone() {
    const QTemporaryDir home;
    const QString notes = home.filePath(QStringLiteral("notes.json"));
    const auto run = [](const char* id, std::int64_t steps) {
      auto made = std::make_unique<RunSeries>(QLatin1String(id), 0);
      made->setPlan(MadeRun{.steps = steps}.plan());
      made->setName(QStringLiteral("Demo"));
      return made;
    };
    {
      RunTableModel table;
      const RunNotebook notebook(&table, notes);
      const auto four = run("a", 4), sixteen = run("b", 16);
      table.addRun(four.get());
      table.addRun(sixteen.get());
      QTRY_COMPARE(four->name(), QStringLiteral("Demo, N = 4"));
    }
    RunTableModel table;
    RunNotebook notebook(&table, notes);
    const auto four = run("a", 4);
    table.addRun(four.get());
    QCoreApplication::processEvents();
    QCOMPARE(four->name(), QStringLiteral("Demo, N = 4"));
    notebook.rename(four.get(), QStringLiteral("mine"));
    QCOMPARE(four->name(), QStringLiteral("mine"));
  }

  void a_run_with_a_bug_is_called_the_same_when_its_summary_is_read() {
    RunSummary summary;
    summary.spec.run.name = summary.name = "Means";
    summary.spec.teaching.bug = Bug::mean_of_means;
    RunSeries trained(QStringLiteral("a"), 0), listed(QStringLiteral("a"), 0);
    trained.setSpec(summary.spec);
    listed.setSummary(summary);
    QCOMPARE(listed.name(), trained.name());
    QVERIFY(listed.name().contains(QStringLiteral("bug")));
  }

  void an_empty_name_brings_back_the_runs_own() {
    RunTableModel table;
    RunSeries run(QStringLiteral("run-0"), 0);
    const QTemporaryDir home;
    RunNotebook notebook(&table, home.filePath(QStringLiteral("notes.json")));
    notebook.rename(&run, QStringLiteral("mine"));
    QCOMPARE(run.name(), QStringLiteral("mine"));
    notebook.rename(&run, QStringLiteral("  "));
    QCOMPARE(run.name(), QStringLiteral("run-0"));
  }

  void two_studios_keep_each_others_notes() {
    const QTemporaryDir home;
    const QString path = home.filePath(QStringLiteral("notes.json"));
    RunTableModel table;
    RunSeries first(QStringLiteral("run-0"), 0);
    RunSeries second(QStringLiteral("run-1"), 1);
    {
      RunNotebook one(&table, path);
      RunNotebook other(&table, path);
      one.rename(&first, QStringLiteral("a"));
      other.rename(&second, QStringLiteral("b"));
    }
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray written = file.readAll();
    QVERIFY(written.contains("run-0") && written.contains("run-1"));
  }

  void a_damaged_file_is_said_and_not_written_over() {
    const QTemporaryDir home;
    const QString path = home.filePath(QStringLiteral("notes.json"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("{\"runs\": ");
    file.close();
    RunTableModel table;
    RunSeries run(QStringLiteral("run-0"), 0);
    RunNotebook notebook(&table, path);
    QSignalSpy failed(&notebook, &RunNotebook::failed);
    notebook.toggleStar(&run);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(file.readAll(), QByteArray("{\"runs\": "));
  }

  void the_filter_finds_names_states_tags_and_stars() {
    RunTableModel table;
    RunSeries first(QStringLiteral("first"), 0);
    RunSeries second(QStringLiteral("second"), 1);
    first.setNotes({QString(), QStringLiteral("slow start"), {QStringLiteral("warm")}, false});
    second.setNotes({QString(), QString(), {QStringLiteral("cold")}, true});
    second.setState(RunState::running);
    table.addRun(&first);
    table.addRun(&second);
    RunFilter filter;
    filter.setSourceModel(&table);
    const auto found = [&](const char* text) {
      filter.setText(QLatin1String(text));
      QStringList names;
      for (int row = 0; row < filter.rowCount(); ++row)
        names << table.run(filter.mapToSource(filter.index(row, 0)))->name();
      return names.join(QLatin1Char(' '));
    };
    QCOMPARE(found(""), QStringLiteral("first second"));
    QCOMPARE(found("FIRST"), QStringLiteral("first"));
    QCOMPARE(found("running"), QStringLiteral("second"));
    QCOMPARE(found("slow"), QStringLiteral("first"));
    QCOMPARE(found("#wa"), QStringLiteral("first"));
    QCOMPARE(found("*"), QStringLiteral("second"));
    QCOMPARE(found("second #warm"), QString());
    // The run that is looked at stays.
    filter.setKept(&first);
    QCOMPARE(found("second"), QStringLiteral("first second"));
    QVERIFY(filter.matches());
    QCOMPARE(found("third"), QStringLiteral("first"));
    QVERIFY(!filter.matches());
  }

  void a_run_that_is_listed_without_matching_the_filter_says_so() {
    RunTableModel table;
    RunSeries first(QStringLiteral("first"), 0);
    RunSeries second(QStringLiteral("second"), 1);
    table.addRun(&first);
    table.addRun(&second);
    RunFilter filter;
    filter.setSourceModel(&table);
    const auto said = [&](const RunSeries& run, int role) {
      return filter.mapFromSource(table.index(table.rowOf(&run), RunTableModel::nameColumn)).data(role);
    };
    const auto mark = [&](const RunSeries& run) { return said(run, RunTableModel::marksRole).toStringList(); };
    filter.setKept(&first);
    QCOMPARE(mark(first), QStringList());
    QSignalSpy changed(&filter, &QAbstractItemModel::dataChanged);
    filter.setText(QStringLiteral("second"));
    QVERIFY(changed.count() > 0);
    QCOMPARE(mark(first), QStringList{QStringLiteral("not matching")});
    QCOMPARE(mark(second), QStringList());
    QCOMPARE(said(first, Qt::AccessibleTextRole).toString(), QStringLiteral("Name: first, not matching"));
    QVERIFY(said(first, Qt::ToolTipRole).toString().contains(QStringLiteral("because it has the focus")));
    filter.setText(QStringLiteral("first"));
    QCOMPARE(mark(first), QStringList());
  }

  void a_deleted_run_goes_to_the_trash_and_comes_back() {
    const QString folder = home_.filePath(QStringLiteral("data/runs/a"));
    ended(folder);
    Listed listed(home_.filePath(QStringLiteral("data/runs")));
    RunTrash trash(&listed.library);
    RunSeries* run = listed.library.find(folder);
    QVERIFY(run);
    QSignalSpy moved(&trash, &RunTrash::moved);
    QSignalSpy failed(&trash, &RunTrash::failed);
    trash.remove({run});
    QTRY_VERIFY_WITH_TIMEOUT(moved.count() + failed.count() > 0, patience_ms);
    QVERIFY2(failed.isEmpty(), qPrintable(failed.value(0).value(0).toString()));
    QVERIFY(!QFileInfo::exists(folder));
    QCOMPARE(listed.library.table()->rowCount(), 0);
    QVERIFY(!listed.library.find(folder));
    QSignalSpy restored(&trash, &RunTrash::restored);
    trash.undo();
    QTRY_COMPARE_WITH_TIMEOUT(restored.count(), 1, patience_ms);
    QVERIFY(QFileInfo::exists(folder + QStringLiteral("/events.jsonl")));
    QCOMPARE(listed.library.find(folder), run);
    QCOMPARE(listed.library.table()->rowCount(), 1);
  }

  void a_run_that_trains_is_not_deleted() {
    const QString folder = home_.filePath(QStringLiteral("data/live/a"));
    const RunWriter writer = begun(folder);
    Listed listed(home_.filePath(QStringLiteral("data/live")));
    RunTrash trash(&listed.library);
    QSignalSpy failed(&trash, &RunTrash::failed);
    trash.remove({listed.library.find(folder)});
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, patience_ms);
    QVERIFY(failed[0][0].toString().contains(QStringLiteral("Stop it")));
    QVERIFY(QFileInfo::exists(folder));
    QCOMPARE(listed.library.table()->rowCount(), 1);
  }

  void a_run_of_a_terminal_appears_although_there_was_no_folder_before() {
    const QTemporaryDir home;
    RunLibrary library(home.filePath(QStringLiteral("data/accrue/runs")));
    library.refresh();
    const QString folder = home.filePath(QStringLiteral("data/accrue/runs/a"));
    ended(folder);
    QTRY_VERIFY_WITH_TIMEOUT(library.find(folder), patience_ms);
    // And so does the next.
    ended(home.filePath(QStringLiteral("data/accrue/runs/b")));
    QTRY_COMPARE_WITH_TIMEOUT(library.table()->rowCount(), 2, patience_ms);
  }

 private:
  QTemporaryDir home_;
};

ACCRUE_TEST_MAIN(TestRunNotes)

}  // namespace test_run_notes
#include "test_run_notes.moc"
