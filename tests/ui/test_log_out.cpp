// SPDX-License-Identifier: GPL-3.0-or-later
// A session's end, which signals the studio, or the studio and its ranks at once. The ranks save at their next
// boundary, the studio ends once they have ended, and the run can be resumed.
#include <signal.h>
#include <string.h>

#include <QDir>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "run/host_fixture.h"
#include "support/programs.h"
#include "support/test_program.h"

namespace test_log_out {

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

class TestLogOut : public QObject {
  Q_OBJECT
  HostHome home_;

  /// A run's record of its ranks: their process ids, and the number of its updates.
  struct Record {
    std::vector<pid_t> ranks;
    int updates = 0;
  };
  static Record record_of(const fs::path& dir) {
    Record record;
    std::ifstream events(dir / "events.jsonl");
    for (std::string line; std::getline(events, line);) {
      const auto event = QJsonDocument::fromJson(QByteArray::fromStdString(line)).object();
      if (event["kind"] == "rank_ready") record.ranks.push_back(static_cast<pid_t>(event["pid"].toInt()));
      if (event["kind"] == "update") ++record.updates;
    }
    return record;
  }

 private Q_SLOTS:
  void init() {
    for (const char* name : {"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) qunsetenv(name);
  }
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

  void a_studio_without_a_run_closes_with_the_signals_status_data() {
    QTest::addColumn<int>("number");
    for (const int number : {SIGTERM, SIGHUP, SIGINT}) QTest::addRow("%s", ::sigabbrev_np(number)) << number;
  }
  void a_studio_without_a_run_closes_with_the_signals_status() {
    QFETCH(const int, number);
    const QTemporaryDir folder;
    const QString picture = folder.filePath(QStringLiteral("shown.png"));
    test::Program studio(test::programPath("accrue"), {"--new-instance", "--screenshot", picture},
                         {"HOME=" + folder.path(), "QT_QPA_PLATFORM=offscreen"});
    QVERIFY2(eventually([&] { return QFile::exists(picture); }, 60s), studio.errors());
    studio.signal(number);
    QCOMPARE(studio.finish(30000).status, 128 + number);
    QVERIFY(QFile::exists(folder.filePath(QStringLiteral(".local/state/accrue/studio.conf"))));
  }

  void signals_of_a_log_out_leave_a_run_that_can_be_resumed_data() {
    QTest::addColumn<int>("number");
    QTest::addColumn<bool>("all");
    for (const int number : {SIGTERM, SIGHUP}) {
      QTest::addRow("%s to all", ::sigabbrev_np(number)) << number << true;
      QTest::addRow("%s to the studio", ::sigabbrev_np(number)) << number << false;
    }
  }
  void signals_of_a_log_out_leave_a_run_that_can_be_resumed() {
    QFETCH(const int, number);
    QFETCH(const bool, all);
    const QTemporaryDir folder;
    const fs::path home = folder.path().toStdString(), spec = home / "endless.accrue";
    std::ofstream(spec) << write_spec(small_plan({.updates = 10'000'000}).spec);
    test::Program studio(test::programPath("accrue"),
                         {"--new-instance", "--run", "--exit-when-finished", QString::fromStdString(spec.string())},
                         {"HOME=" + folder.path(), "QT_QPA_PLATFORM=offscreen",
                          "ACCRUE_RANK_PROGRAM=" + test::programPath("accrue-rank")});
    fs::path dir;
    Record record;
    QVERIFY2(eventually(
                 [&] {
                   std::error_code error;
                   for (const auto& each : fs::directory_iterator(home / ".local/share/accrue/runs", error))
                     dir = each.path();
                   record = record_of(dir);
                   return record.updates > 0 && record.ranks.size() == 2;
                 },
                 60s),
             studio.errors());
    QElapsedTimer since;
    since.start();
    studio.signal(number);
    if (all)
      for (const pid_t rank : record.ranks) ::kill(rank, number);
    QCOMPARE(studio.finish(30000).status, 128 + number);
    QVERIFY(eventually([&] { return !is_locked(dir); }, 30s));
    QVERIFY2(since.elapsed() < 30000, qPrintable(QStringLiteral("ended after %1 ms").arg(since.elapsed())));
    const auto left = read_run(dir);
    QVERIFY(left.has_value());
    QVERIFY2(left->last_checkpoint.starts_with("step-"), left->last_checkpoint.c_str());
    const auto saved = std::stoll(left->last_checkpoint.substr(5));

    EngineHostOptions options;
    options.rank_program = test::programPath("accrue-rank").toStdString();
    WatchedHost host(options);
    QVERIFY(host.resume(dir).has_value());
    const auto update = host.wait_for<Update>([&](const Update& each) { return each.update > saved; }, 60s);
    VERIFY_STORY(update && update->update == saved + 1);
  }
};

ACCRUE_TEST_MAIN(TestLogOut)

}  // namespace test_log_out
#include "test_log_out.moc"
