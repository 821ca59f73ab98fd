// SPDX-License-Identifier: Apache-2.0
// RunRecord in a loop of one rank. tests/ranks/test_own_ranks.cpp has several, under launchers.
#include <pthread.h>
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <fstream>

#include "accrue/rank/run_record.h"
#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/run_store.h"
#include "support/test_program.h"

namespace test_run_record_loop {

using namespace accrue;
namespace fs = std::filesystem;

class TestRunRecordLoop : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  std::unique_ptr<Rendezvous> meeting_;
  std::unique_ptr<Communicator> alone_ = single_communicator();

  fs::path path(const char* name) const { return temporary_.filePath(QLatin1String(name)).toStdString(); }
  Result<std::unique_ptr<RunRecord>> open(const RunRecordOptions& options) {
    return RunRecord::open(*meeting_, *alone_, options);
  }
  /// Updates of two micro-steps, with losses 1 and 3.
  static void train(RunRecord& record, int updates) {
    for (int update = 0; update < updates; ++update) {
      for (const double loss : {1.0, 3.0}) {
        QVERIFY(record.begin_micro_step());
        record.end_micro_step(loss, 4, loss > 2.0 ? 30 : 10);
      }
      record.scalar("accuracy", 0.5 + 0.125 * update);
      QVERIFY(!record.end_update({.lr = 0.25}).stop);
    }
  }
  static std::vector<Update> updates_of(const fs::path& dir) {
    std::vector<Update> updates;
    const auto read = read_events(dir / "events.jsonl");
    if (!read || !to_text(read->problems).empty()) return updates;
    for (const RunEvent& event : read->events)
      if (const auto* update = std::get_if<Update>(&event.body)) updates.push_back(*update);
    return updates;
  }

 private Q_SLOTS:
  void initTestCase() {
    qputenv("XDG_RUNTIME_DIR", temporary_.path().toUtf8());
    qunsetenv("ACCRUE_RUN_DIR");
    meeting_ = std::move(*Rendezvous::join({}, {}));
  }

  void the_loss_of_an_update_is_the_mean_over_its_items() {
    const fs::path dir = path("whole");
    auto record = open({.dir = dir, .name = "mine", .steps = 2, .micro_batch = 4, .updates = 3});
    QVERIFY2(record.has_value(), record ? "" : record.error().text().c_str());
    train(**record, 3);
    (*record)->evaluation(0.75, 2);
    (*record)->finish();
    QVERIFY(!(*record)->active());
    const auto updates = updates_of(dir);
    QCOMPARE(updates.size(), std::size_t{3});
    QCOMPARE(updates.back().loss, (1.0 * 10 + 3.0 * 30) / 40);
    QCOMPARE(updates.back().samples, std::int64_t{24});
    QCOMPARE(updates.back().tokens, std::int64_t{120});
    QCOMPARE(updates.back().steps, std::int64_t{2});
    QCOMPARE(updates.back().lr, 0.25);
    QCOMPARE(updates.back().scalars, (NamedNumbers{{"accuracy", 0.75}}));
    const auto run = read_run(dir);
    QVERIFY(run->problems.empty());
    QCOMPARE(run->state, std::string("finished"));
    QCOMPARE(run->name, std::string("mine"));
    QCOMPARE(run->planned_updates, std::int64_t{3});
    QVERIFY(!is_locked(dir));
  }

  /// Acts like a limit on threads: no stack of this size can be allocated.
  void a_thread_that_cannot_be_started_is_an_error() {
    const fs::path dir = path("threads");
    pthread_attr_t usual, endless;
    QCOMPARE(::pthread_getattr_default_np(&usual), 0);
    QCOMPARE(::pthread_getattr_default_np(&endless), 0);
    QCOMPARE(::pthread_attr_setstacksize(&endless, std::size_t{1} << 47), 0);
    QCOMPARE(::pthread_setattr_default_np(&endless), 0);
    const auto refused = open({.dir = dir});
    QCOMPARE(::pthread_setattr_default_np(&usual), 0);
    QVERIFY(!refused.has_value());
    QCOMPARE(refused.error().code, ErrorCode::device);
    QVERIFY2(refused.error().message.starts_with("a thread of the record cannot be started"),
             refused.error().text().c_str());
    QVERIFY(!is_locked(dir));
    auto record = open({.dir = dir});
    QVERIFY2(record.has_value(), record ? "" : record.error().text().c_str());
    (*record)->finish();
    QCOMPARE(read_run(dir)->state, std::string("finished"));
  }

  void a_loop_that_is_left_has_failed_and_goes_on_in_its_folder() {
    const fs::path dir = path("left");
    {
      auto record = open({.dir = dir, .steps = 2});
      train(**record, 2);
    }
    const auto failed = read_run(dir);
    QCOMPARE(failed->state, std::string("failed"));
    QVERIFY2(failed->message.find("left its loop") != std::string::npos, failed->message.c_str());
    auto again = open({.dir = dir, .steps = 2, .updates_done = 2, .micro_steps_done = 4, .samples_done = 16});
    QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
    train(**again, 1);
    (*again)->finish();
    const auto updates = updates_of(dir);
    QCOMPARE(updates.size(), std::size_t{3});
    QCOMPARE(updates.back().update, std::int64_t{3});
    QCOMPARE(updates.back().micro_step, std::int64_t{6});
    QCOMPARE(updates.back().samples, std::int64_t{24});
    QCOMPARE(read_run(dir)->state, std::string("finished"));
    QCOMPARE(read_run(dir)->run_id, failed->run_id);
  }

  void a_folder_that_holds_something_else_is_refused_data() {
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("says");
    QTest::newRow("a run of a spec") << "plan.json"
                                     << "holds a run of a spec";
    QTest::newRow("something else") << "notes.txt"
                                    << "the folder is not empty";
    QTest::newRow("an imported run") << "imported.json"
                                     << "was imported";
  }
  void a_folder_that_holds_something_else_is_refused() {
    QFETCH(QString, file);
    QFETCH(QString, says);
    const fs::path dir = path(qPrintable("with " + file));
    fs::create_directory(dir);
    std::ofstream(dir / file.toStdString()) << "{}";
    const auto record = open({.dir = dir});
    QVERIFY(!record.has_value());
    QVERIFY2(record.error().text().find(says.toStdString()) != std::string::npos, record.error().text().c_str());
    QVERIFY(!fs::exists(dir / "events.jsonl"));
  }

  void a_folder_in_use_is_refused() {
    const fs::path dir = path("used");
    auto record = open({.dir = dir, .steps = 2});
    train(**record, 1);
    const auto other = open({.dir = dir});
    QVERIFY(!other.has_value());
    QVERIFY2(other.error().text().find("another process holds this run") != std::string::npos,
             other.error().text().c_str());
    (*record)->finish();
  }

  void without_a_folder_nothing_is_recorded() {
    auto record = open({});
    QVERIFY(record.has_value() && !(*record)->active());
    train(**record, 2);
    (*record)->finish();
  }
};

ACCRUE_TEST_MAIN(TestRunRecordLoop)

}  // namespace test_run_record_loop
#include "test_run_record_loop.moc"
