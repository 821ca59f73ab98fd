// SPDX-License-Identifier: GPL-3.0-or-later
// Runs from disk: requested ones and others, runs hosted elsewhere, and colours that stay.
#include <QDir>
#include <QFile>
#include <QSet>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <memory>
#include <optional>

#include "accrue/run/record/run_store.h"
#include "made_run.h"
#include "runs/run_library.h"
#include "support/test_program.h"

namespace test_library {

using namespace accrue;
using namespace accrue::ui;
using accrue::test::MadeRun;

namespace {

constexpr int patience_ms = 30000;

/// A run folder; the holder of its writer hosts the run.
RunWriter hosted(const QString& folder, std::int64_t updates) {
  auto writer = RunWriter::create(folder.toStdString(), "accrue = 1\n[accumulation]\nsteps = 4\n");
  if (!writer) qFatal("%s", writer.error().text().c_str());
  const auto add = [&](const RunEvent& event) {
    if (!writer->append(event)) qFatal("the event was not stored");
  };
  add(MadeRun::started());
  add(MadeRun::state("running"));
  for (std::int64_t i = 1; i <= updates; ++i)
    add({0, i, i, Update{.update = i, .micro_step = i, .loss = 1.0, .reason = "full"}});
  return std::move(*writer);
}

void finish(RunWriter writer, std::int64_t updates) {
  RunEvent state = MadeRun::state("finished");
  state.seq = 2;
  const RunEvent last{0, updates, updates, Update{.update = updates, .micro_step = updates, .loss = 1.0}};
  const RunEvent end{supervisor_rank, 3, updates, RunFinished{.outcome = "finished", .updates = updates}};
  for (const RunEvent& event : {last, state, end})
    if (!writer.append(event)) qFatal("the end was not stored");
}

QList<RunSeries*> liveRuns(RunLibrary& library, const QTemporaryDir& home, int count) {
  QList<RunSeries*> runs;
  for (int i = 0; i < count; ++i)
    runs << library.addLive(home.filePath(QString::number(i)), std::nullopt, RunLibrary::Past::keep);
  return runs;
}

}  // namespace

class TestLibrary : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void reading_what_is_shown_is_no_opening() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("a"));
    finish(hosted(folder, 5), 6);
    RunLibrary library(home.path());
    QSignalSpy refreshed(&library, &RunLibrary::refreshed);
    QSignalSpy opened(&library, &RunLibrary::opened);
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    library.refresh();
    QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
    RunSeries* run = library.find(folder);
    QVERIFY(run);
    library.load(run);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QCOMPARE(opened.count(), 0);
    QCOMPARE(run->series(Metric::updateLoss).size(), std::size_t{6});
    library.open(folder);
    QCOMPARE(opened.count(), 1);
  }

  void opening_twice_reads_once() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("a"));
    finish(hosted(folder, 5), 6);
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy opened(&library, &RunLibrary::opened);
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    library.open(folder);
    library.open(folder);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QCOMPARE(opened.count(), 1);
    QCOMPARE(library.find(folder)->eventsTaken(), 10);
  }

  void a_history_of_many_blocks_is_read_whole_and_in_order() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("long"));
    constexpr std::int64_t updates = 80'000;
    finish(hosted(folder, updates - 1), updates);
    constexpr qint64 blocks = 2 * 4 << 20;
    QVERIFY(QFileInfo(QDir(folder).filePath(QStringLiteral("events.jsonl"))).size() > blocks);
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    library.open(folder);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    const RunSeries& run = *library.find(folder);
    QCOMPARE(run.eventsTaken(), updates + 4);
    const SeriesStore& losses = run.series(Metric::updateLoss);
    QCOMPARE(losses.size(), static_cast<std::size_t>(updates));
    for (std::size_t i = 0; i < losses.size(); ++i)
      QCOMPARE(losses.clock(Clock::update)[i], static_cast<double>(i + 1));
    QCOMPARE(run.state(), RunState::finished);
  }

  void a_run_that_ends_while_its_history_is_read_keeps_its_outcome() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("long"));
    constexpr std::int64_t updates = 60'000;
    std::optional<RunWriter> writer = hosted(folder, updates - 1);
    constexpr qint64 block = 4 << 20;
    QVERIFY(QFileInfo(QDir(folder).filePath(QStringLiteral("events.jsonl"))).size() > block);
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    // Found with its first block, before the second is requested.
    connect(&library, &RunLibrary::liveFound, this, [&writer] {
      if (!writer) return;
      finish(std::move(*writer), updates);
      writer.reset();
    });
    library.open(folder);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QVERIFY(!writer);
    const RunSeries& run = *library.find(folder);
    QCOMPARE(run.eventsTaken(), updates + 4);
    QCOMPARE(run.state(), RunState::finished);
    QCOMPARE(run.outcome().outcome, QStringLiteral("finished"));
    QTRY_VERIFY_WITH_TIMEOUT(library.liveElsewhere().isEmpty(), patience_ms);
  }

  void a_run_that_others_host_is_found_through_a_link_and_read_again_when_it_ended() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("real"));
    const QString link = home.filePath(QStringLiteral("link"));
    std::optional<RunWriter> writer = hosted(folder, 5);
    QVERIFY(QFile::link(folder, link));
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy found(&library, &RunLibrary::liveFound);
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    library.open(link);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QCOMPARE(found.count(), 1);
    RunSeries* run = library.find(folder);
    QVERIFY(run && run->isLive());
    QCOMPARE(library.liveElsewhere(), QStringList{QDir(folder).canonicalPath()});
    QVERIFY(library.liveElsewhere().contains(run->folder()));
    finish(std::move(*writer), 6);
    writer.reset();
    // Nobody asks: the library looks after it.
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 2, patience_ms);
    QCOMPARE(run->state(), RunState::finished);
    QVERIFY(library.liveElsewhere().isEmpty());
    QCOMPARE(run->series(Metric::updateLoss).size(), std::size_t{6});
    QCOMPARE(run->eventsTaken(), 10);
    RunLibrary fresh(home.filePath(QStringLiteral("runs")));
    QSignalSpy read(&fresh, &RunLibrary::loaded);
    fresh.open(folder);
    QTRY_COMPARE_WITH_TIMEOUT(read.count(), 1, patience_ms);
    QCOMPARE(library.log()->rowCount(), fresh.log()->rowCount());
  }

  void a_run_that_others_host_stays_found_beside_the_listing() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("outside"));
    const RunWriter writer = hosted(folder, 2);
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    QSignalSpy refreshed(&library, &RunLibrary::refreshed);
    library.open(folder);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    library.refresh();
    QTRY_VERIFY_WITH_TIMEOUT(refreshed.count() > 0, patience_ms);
    QCOMPARE(library.liveElsewhere().size(), 1);
  }

  void a_run_that_becomes_live_here_forgets_the_history_being_read() {
    const QTemporaryDir home;
    const QString folder = home.filePath(QStringLiteral("a"));
    const QString other = home.filePath(QStringLiteral("b"));
    constexpr auto many = static_cast<std::int64_t>(RunLibrary::slice) * 12;
    finish(hosted(folder, many), many + 1);
    finish(hosted(other, 1), 2);
    RunLibrary library(home.filePath(QStringLiteral("runs")));
    QSignalSpy loaded(&library, &RunLibrary::loaded);
    library.open(folder);
    QTRY_VERIFY_WITH_TIMEOUT(library.find(folder) && library.find(folder)->hasEvents(), patience_ms);
    RunSeries* run = library.addLive(folder, std::nullopt, RunLibrary::Past::forget);
    QCOMPARE(loaded.count(), 0);
    QCOMPARE(run->eventsTaken(), 0);
    // Histories are fed in order: once the next one is in, this one would have been.
    library.open(other);
    QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, patience_ms);
    QCOMPARE(run->eventsTaken(), 0);
    library.append(run, {MadeRun::started()});
    QCOMPARE(run->eventsTaken(), 1);
  }

  void a_run_keeps_its_colour_while_it_is_shown() {
    const QTemporaryDir home;
    RunLibrary library(home.path());
    const QList<RunSeries*> runs = liveRuns(library, home, 10);
    for (int i = 1; i <= 10; ++i) library.assignColors(runs.first(i));
    for (int i = 0; i < 10; ++i) QCOMPARE(runs[i]->colorIndex(), i);
    library.assignColors({runs[9], runs[1], runs[8], runs[0]});
    library.assignColors(runs);
    for (int i = 0; i < 10; ++i) QCOMPARE(runs[i]->colorIndex(), i);
  }

  void a_colour_of_hidden_runs_alone_comes_before_a_dash() {
    const QTemporaryDir home;
    RunLibrary library(home.path());
    const QList<RunSeries*> runs = liveRuns(library, home, 10);
    library.assignColors(runs.first(8));
    library.assignColors({runs[0], runs[7], runs[8]});
    QCOMPARE(runs[8]->colorIndex(), 1);
    QCOMPARE(runs[7]->colorIndex(), 7);
    // The hidden run finds its colour taken when it is shown again.
    library.assignColors({runs[1], runs[7], runs[8]});
    QCOMPARE(runs[8]->colorIndex(), 1);
    QCOMPARE(runs[1]->colorIndex(), 0);
    // With all in sight the next one is dashed.
    library.assignColors(runs.first(9));
    library.assignColors(runs);
    QSet<int> used;
    for (const RunSeries* run : runs) used.insert(run->colorIndex());
    QCOMPARE(used.size(), 10);
    QVERIFY(runs[9]->colorIndex() >= RunSeries::colors);
  }
};

ACCRUE_TEST_MAIN(TestLibrary)

}  // namespace test_library
#include "test_library.moc"
