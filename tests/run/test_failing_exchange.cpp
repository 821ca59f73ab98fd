// SPDX-License-Identifier: Apache-2.0
// Imports and exports that a disk fails, or that are killed, at each of their file calls in turn: the second try finds
// nothing in its way.
#include <QTemporaryDir>
#include <QTest>
#include <filesystem>
#include <fstream>
#include <string>

#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_failing_exchange {

using namespace accrue;
using namespace accrue::test;
namespace fs = std::filesystem;

class TestFailingExchange : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  fs::path home() const { return temporary_.path().toStdString(); }
  fs::path fresh() { return home() / ("place" + std::to_string(++count_)); }

  Outcome run(const QStringList& arguments, const QStringList& environment = {}) const {
    return Program(programPath("accrue-run"), arguments, environment).finish();
  }
  /// With a disk that fails the call of this number, of those under the place; 0: none, and all are counted.
  Outcome run_on_failing_disk(const QStringList& arguments, const QString& how, int call, const fs::path& place) const {
    return run(arguments, {"LD_PRELOAD=" + programPath("libaccrue_failing_disk.so"), "FAILING_DISK_HOW=" + how,
                           QStringLiteral("FAILING_DISK_CALL=%1").arg(call),
                           "FAILING_DISK_PATH=" + QString::fromStdString(place.string()),
                           "FAILING_DISK_LOG=" + QString::fromStdString((place.string() + ".calls"))});
  }
  static int calls_in(const fs::path& place) {
    std::ifstream log(place.string() + ".calls");
    int count = 0;
    for (std::string line; std::getline(log, line);) ++count;
    return count;
  }
  static QStringList names_in(const fs::path& folder) {
    QStringList names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      names << QString::fromStdString(entry.path().filename().string());
    return names;
  }

 private Q_SLOTS:
  void initTestCase() {
    std::ofstream(home() / "log.csv") << "step,loss\n1,3\n2,2\n";
    auto writer = RunWriter::create(home() / "run", write_spec({})).value();
    for (std::int64_t update : {1, 2})
      writer
          .append({.rank = 0,
                   .seq = update - 1,
                   .body = Update{.update = update, .micro_step = update, .loss = 2.0, .lr = 0.1}})
          .value();
  }

  void the_second_try_is_free_to_do_it_data() {
    const Rows<bool, QString> row;
    for (const char* how : {"EIO", "ENOSPC", "KILL"}) {
      row(qPrintable(QStringLiteral("import, %1").arg(how)), true, how);
      row(qPrintable(QStringLiteral("export, %1").arg(how)), false, how);
    }
  }
  void the_second_try_is_free_to_do_it() {
    const auto [imports, how] = current_row<bool, QString>();
    const auto arguments = [&, imports = imports](const fs::path& place) {
      const QString out = QString::fromStdString((place / "one").string());
      return imports ? QStringList{"import", QString::fromStdString((home() / "log.csv").string()), "--out", out}
                     : QStringList{"export", QString::fromStdString((home() / "run").string()),
                                   "--to",   "tensorboard",
                                   "--out",  out};
    };
    const auto is_done = [imports = imports](const fs::path& place) {
      if (!imports) return names_in(place / "one").size() == 1 && names_in(place / "one").first().contains("tfevents");
      const auto run = read_run(place / "one");
      return run && run->problems.empty() && run->state == "finished" && run->updates == 2;
    };
    const fs::path counting = fresh();
    QCOMPARE(run_on_failing_disk(arguments(counting), how, 0, counting).status, 0);
    const int calls = calls_in(counting);
    QVERIFY2(calls > 5 && calls < 200, qPrintable(QString::number(calls)));
    for (int call = 1; call <= calls; ++call) {
      const fs::path place = fresh();
      const Outcome first = run_on_failing_disk(arguments(place), how, call, place);
      // A call that completed before the failure is complete; otherwise there is nothing.
      const bool was_done = is_done(place);
      QVERIFY2(was_done || first.status != 0, qPrintable(first.err));
      const Outcome second = run(arguments(place));
      const QString context = QStringLiteral("call %1: %2\n-- then --\n%3").arg(call).arg(first.err, second.err);
      QVERIFY2(second.status == (was_done ? 2 : 0), qPrintable(context));
      QVERIFY2(is_done(place), qPrintable(context));
      if (!was_done) QVERIFY2(names_in(place) == QStringList{"one"}, qPrintable(names_in(place).join(' ')));
    }
  }
};

ACCRUE_TEST_MAIN(TestFailingExchange)

}  // namespace test_failing_exchange
#include "test_failing_exchange.moc"
