// SPDX-License-Identifier: Apache-2.0
// Ranks that no supervisor started: accrue-rank SPEC --out DIR, alone, as a launcher starts it.
#include <signal.h>

#include <QDir>
#include <QDirIterator>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <map>

#include "accrue/run/checkpoint_mark.h"
#include "accrue/run/run_store.h"
#include "accrue/run/spec_io.h"
#include "run/host_fixture.h"
#include "support/programs.h"
#include "support/test_program.h"

using namespace accrue;
using namespace accrue_test;
namespace fs = std::filesystem;

namespace {

/// Every file below a folder, and what it holds.
std::map<QString, QByteArray> contents_of(const QString& dir) {
  std::map<QString, QByteArray> contents;
  for (QDirIterator each(dir, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories); each.hasNext();) {
    QFile file(each.next());
    if (file.open(QIODevice::ReadOnly)) contents[each.filePath()] = file.readAll();
  }
  return contents;
}

CheckpointMark newest_checkpoint(const QString& dir) {
  CheckpointMark newest;
  for (const QString& name : QDir(dir + "/checkpoints").entryList(QDir::Dirs))
    newest = std::max(newest, checkpoint_mark(name.toStdString()));
  return newest;
}

}  // namespace

class TestOwnRanks : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  QString path(const QString& name) const { return temporary_.filePath(name); }
  QString fresh() { return path(QStringLiteral("run%1").arg(++count_)); }
  /// A spec of one rank.
  QString spec(std::int64_t updates, std::int64_t steps = 4) {
    const QString file = path(QStringLiteral("spec%1.accrue").arg(++count_));
    const auto plan = small_plan({.ranks = 1, .steps = steps, .updates = updates, .checkpoint_every = 1});
    std::ofstream(file.toStdString()) << write_spec(plan.spec);
    return file;
  }
  static test::Program begin(const QString& spec, const QString& dir) {
    return test::Program(test::programPath("accrue-rank"), {spec, "--out", dir}, {}, dir + QStringLiteral(".events"));
  }
  static bool trains(const QString& dir) {
    return eventually([&] { return newest_checkpoint(dir).valid(); }, std::chrono::seconds(60));
  }

 private Q_SLOTS:
  void another_run_in_the_folder_is_refused_and_kept() {
    const QString dir = fresh();
    QCOMPARE(begin(spec(3), dir).finish(60000).status, 0);
    const auto before = contents_of(dir);
    QVERIFY(before.contains(dir + "/spec.toml") && before.contains(dir + "/plan.json"));
    test::Program other = begin(spec(3, 2), dir);
    QCOMPARE(other.finish(60000).status, 2);
    QVERIFY2(other.says("the folder holds another run: accumulation.steps is 4 there and 2 here", 0), other.errors());
    QCOMPARE(contents_of(dir), before);
  }

  void the_folder_of_a_live_run_is_refused() {
    const QString dir = fresh(), endless = spec(10'000'000);
    test::Program first = begin(endless, dir);
    QVERIFY2(trains(dir), first.errors());
    test::Program second = begin(endless, dir);
    QCOMPARE(second.finish(60000).status, 2);
    QVERIFY2(second.says(qPrintable(dir), 0), second.errors());
    QVERIFY(is_locked(dir.toStdString()));
    first.signal(SIGTERM);
    QCOMPARE(first.finish(60000).status, 130);
    QVERIFY(!is_locked(dir.toStdString()));
  }

  void a_signal_ends_in_a_checkpoint_from_which_the_same_command_goes_on_data() {
    QTest::addColumn<int>("number");
    QTest::newRow("TERM") << SIGTERM;
    QTest::newRow("INT") << SIGINT;
  }
  void a_signal_ends_in_a_checkpoint_from_which_the_same_command_goes_on() {
    QFETCH(int, number);
    const QString dir = fresh(), endless = spec(10'000'000);
    const auto updates = [](const QString& events) {
      QFile file(events);
      return file.open(QIODevice::ReadOnly) ? file.readAll().count("\"kind\":\"update\"") : 0;
    };
    std::int64_t saved = 0;
    for (int start = 0; start < 2; ++start) {
      test::Program rank = begin(endless, dir);
      QVERIFY(eventually([&] { return updates(dir + ".events") > 0; }, std::chrono::seconds(60)));
      rank.signal(number);
      QVERIFY2(rank.finish(60000).status == 130, rank.errors());
      const auto newest = newest_checkpoint(dir);
      QVERIFY(newest.valid() && newest.update > saved);
      saved = newest.update;
    }
  }
};

ACCRUE_TEST_MAIN(TestOwnRanks)
#include "test_own_ranks.moc"
