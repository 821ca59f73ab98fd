// SPDX-License-Identifier: Apache-2.0
// Limits of the system are errors, not ends: a real run of two ranks in which a file call of one process fails, or
// kills it, and runs under the limits that a shell can set. Whatever happens, the run ends in words, leaves nothing
// running, and the next process that opens its folder brings it to the same bits.
//
// "test_failing_disk --every" fails each call in turn, which takes half an hour; without it some of them, evenly
// spread.
#include <signal.h>

#include <QMap>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTest>
#include <cstring>
#include <fstream>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/record/run_store.h"
#include "rank_process.h"
#include "run/host_fixture.h"
#include "support/places.h"
#include "support/table.h"
#include "support/test_program.h"

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;
using accrue::test::current_row;
using accrue::test::Rows;
namespace fs = std::filesystem;

namespace {

bool every_call = false;

/// Faults that the preloaded library causes in a process; its source describes them.
struct Trouble {
  QString victim;  ///< "supervisor", or a rank's number
  QString how = "EIO";
  int call = 0;  ///< 0: all succeed
  fs::path path;
  fs::path log;

  QStringList variables() const {
    return {"LD_PRELOAD=" + test::programPath("libaccrue_failing_disk.so"), "FAILING_DISK_HOW=" + how,
            QStringLiteral("FAILING_DISK_CALL=%1").arg(call), "FAILING_DISK_PATH=" + QString::fromStdString(path),
            "FAILING_DISK_LOG=" + QString::fromStdString(log)};
  }
};

struct Outcome {
  int status = -1;  ///< -1: a signal ended it, or it did not end
  QString said;
};

/// The calls that were counted, by name and path.
QStringList calls_in(const fs::path& log) {
  QFile file(QString::fromStdString(log));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return QString::fromUtf8(file.readAll()).split('\n', Qt::SkipEmptyParts);
}

/// Whether such a disk can fail this call.
bool concerns(const QString& how, const QString& call) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return call.startsWith(name); });
  };
  if (how == "EMFILE") return is_one_of({"open", "create"});
  if (how == "ENOSPC" || how == "FULL")
    return !is_one_of({"open", "unlink", "rmdir", "remove", "ftruncate"}) && (how == "ENOSPC" || !is_one_of({"close"}));
  return true;
}

/// Returns a file that must not be in a folder after it was opened and closed properly; empty if there is none.
std::string leftover_in(const fs::path& dir) {
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".") || name.ends_with(".part")) return entry.path().string();
  }
  return {};
}

}  // namespace

class TestFailingDisk : public QObject {
  Q_OBJECT
  HostHome home_;
  std::string whole_;                 ///< weights_sha256 of the uninterrupted run
  fs::path killed_;                   ///< a run whose rank 0 was killed in its third checkpoint
  QMap<QString, QStringList> calls_;  ///< by verb and victim

  fs::path fresh() { return home_.fresh(); }

  QStringList run_arguments(const fs::path& dir) const {
    return {"run", QString::fromStdString(home_.path() / "small.accrue"), "--out", QString::fromStdString(dir)};
  }

  /// A rank program that puts the trouble upon one of the ranks.
  fs::path rank_program(const QList<Trouble>& troubles) {
    const fs::path program = home_.path() / "rank.sh";
    std::ofstream script(program);
    script << "#!/bin/sh\n";
    for (const Trouble& trouble : troubles)
      if (trouble.victim != "supervisor")
        script << "case \" $* \" in *\" --rank " << trouble.victim.toStdString() << " \"*) export "
               << trouble.variables().join(' ').toStdString() << " ;; esac\n";
    script << "exec " << test::programPath("accrue-rank").toStdString() << " \"$@\"\n";
    script.close();
    fs::permissions(program, fs::perms::owner_all);
    return program;
  }

  /// accrue-run, begun by a shell that sets limits first.
  Outcome run(const QStringList& arguments, const QList<Trouble>& troubles = {}, const QString& limits = {}) {
    QProcess process;
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("ACCRUE_RANK_PROGRAM", QString::fromStdString(rank_program(troubles)));
    QStringList command{test::programPath("accrue-run")};
    for (const Trouble& trouble : troubles)
      if (trouble.victim == "supervisor") command = QStringList{"env"} + trouble.variables() + command;
    process.setProcessEnvironment(environment);
    process.setProcessChannelMode(QProcess::MergedChannels);
    const QString begin = limits.isEmpty() ? "" : limits + " && ";
    process.start("sh", QStringList{"-c", begin + "exec \"$@\"", "sh"} + command + arguments);
    Outcome outcome;
    const bool ended = process.waitForFinished(90000);
    if (!ended) process.kill();
    process.waitForFinished();
    outcome.said = QString::fromUtf8(process.readAll());
    if (ended && process.exitStatus() == QProcess::NormalExit) outcome.status = process.exitCode();
    return outcome;
  }

  /// Opens what a run has left, as its user would, to the end.
  void bring_to_its_end(const fs::path& dir, const Outcome& before) {
    const auto context = [&](const Outcome& after) {
      return (before.said.right(1500) + "\n-- then --\n" + after.said.right(1500)).toUtf8();
    };
    // Ranks that lost their supervisor save and end by themselves.
    QVERIFY2(eventually([&] { return ranks_of_run(dir).empty(); }, 35s), context({}).constData());
    const auto left = read_run(dir);
    const bool was_finished = left && left->state == "finished";
    const bool was_begun = fs::exists(dir / "plan.json");
    const auto opened = run(was_begun ? QStringList{"resume", QString::fromStdString(dir)} : run_arguments(dir));
    QVERIFY2(opened.status == (was_finished ? 2 : 0), context(opened).constData());
    if (was_finished) QVERIFY2(opened.said.contains("the run is complete"), context(opened).constData());
    const auto end = read_run(dir);
    QVERIFY2(end && end->state == "finished" && end->weights_sha256 == whole_, context(opened).constData());
    QVERIFY2(end->problems.empty(), end->problems.empty() ? "" : end->problems.front().c_str());
    QVERIFY2(fs::exists(dir / "summary.json") && fs::exists(dir / "final" / "model.safetensors"),
             context(opened).constData());
    QCOMPARE(read_events(dir / "events.jsonl")->problems.unreadable_lines, 0);
    QVERIFY2(leftover_in(dir).empty(), leftover_in(dir).c_str());
    QVERIFY2(ranks_of_run(dir).empty(), context(opened).constData());
    QVERIFY2(home_.leftovers().empty(), home_.leftovers().c_str());
  }

  /// The whole run, or what is left of the killed one.
  Outcome run_or_resume(const QString& verb, const fs::path& dir, const QList<Trouble>& troubles) {
    if (verb == "run") return run(run_arguments(dir), troubles);
    fs::copy(killed_, dir, fs::copy_options::recursive);
    return run({"resume", QString::fromStdString(dir)}, troubles);
  }

  void fail_call(const QString& verb, const QString& victim, const QString& how, int call) {
    const fs::path dir = fresh();
    const fs::path log = dir.string() + ".log";
    const Outcome outcome = run_or_resume(verb, dir, {{victim, how, call, dir, log}});
    const QStringList calls = calls_in(log);
    const QString which = QStringLiteral("%1 %2 %3 %4: %5 -> %6")
                              .arg(verb, victim, how)
                              .arg(call)
                              .arg(calls.value(call - 1))
                              .arg(outcome.status);
    if (every_call) qInfo("%s", qPrintable(which));
    const auto context = [&] { return (which + "\n" + outcome.said.right(3000)).toUtf8(); };
    const bool met = calls.size() >= call;
    if (how == "KILL" && met) {
      QVERIFY2(outcome.status == (victim == "supervisor" ? -1 : 4), context().constData());
    } else {
      QVERIFY2(outcome.status == 0 || outcome.status == 5, context().constData());
      const char* words = std::strerror(how == "EIO" ? EIO : how == "EMFILE" ? EMFILE : ENOSPC);
      const bool says_why = outcome.said.contains(words) || outcome.said.contains("the disk is full");
      const bool says_where = outcome.said.contains(QString::fromStdString(dir) + ": ") ||
                              outcome.said.contains(QString::fromStdString(dir) + "/");
      if (outcome.status != 0) QVERIFY2(says_why && says_where, context().constData());
      if (how == "FULL" && outcome.said.contains("cannot be stored"))
        QVERIFY2(outcome.said.contains(" short, "), context().constData());
    }
    bring_to_its_end(dir, outcome);
    if (QTest::currentTestFailed()) qWarning("%s", context().constData());
    std::error_code ignored;
    fs::remove_all(dir, ignored);
  }

 private Q_SLOTS:
  /// The uninterrupted run, which tells how many calls there are.
  void initTestCase() {
    std::ofstream(home_.path() / "small.accrue")
        << "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [4]\n[data]\nkind = \"synthetic\"\nsamples = 4096\n"
           "[accumulation]\nsteps = 2\nmicro_batch = 2\n[parallel]\ndata = 2\nbackend = \"shm\"\n"
           "[launch]\nthreads_per_rank = 1\n[run]\nupdates = 6\n[checkpoint]\nevery_updates = 2\nkeep = 2\n";
    const Outcome killed = run_or_resume(
        "run", killed_ = fresh(), {{"0", "KILL", 1, killed_ / "checkpoints" / ".step-6", killed_.string() + ".log"}});
    QVERIFY2(killed.status == 4 && read_run(killed_)->last_checkpoint == "step-4", qPrintable(killed.said));
    for (const char* verb : {"run", "resume"}) {
      const fs::path dir = fresh();
      QList<Trouble> troubles;
      for (const char* victim : {"supervisor", "0", "1"})
        troubles += Trouble{victim, "EIO", 0, dir, dir.string() + "-" + victim + ".log"};
      const Outcome outcome = run_or_resume(verb, dir, troubles);
      QVERIFY2(outcome.status == 0, qPrintable(outcome.said));
      if (whole_.empty()) whole_ = read_run(dir)->weights_sha256;
      QCOMPARE(read_run(dir)->weights_sha256, whole_);
      for (const Trouble& trouble : troubles) {
        const QString key = verb + (" " + trouble.victim);
        calls_[key] = calls_in(trouble.log);
        QVERIFY2(calls_[key].size() > 10, qPrintable(key));
      }
    }
    QVERIFY(!whole_.empty());
  }

  /// After every test: no socket, no lock.
  void cleanup() { QVERIFY2(home_.leftovers().empty(), home_.leftovers().c_str()); }

  void a_call_that_fails_costs_no_update_data() {
    Rows<QString, QString, QString>();
    for (const char* verb : {"run", "resume"})
      for (const char* victim : {"supervisor", "0", "1"})
        for (const char* how : {"ENOSPC", "EIO", "EMFILE", "FULL", "KILL"})
          QTest::addRow("%s %s %s", verb, victim, how) << verb << victim << how;
  }
  void a_call_that_fails_costs_no_update() {
    const auto [verb, victim, how] = current_row<QString, QString, QString>();
    int count = 0;
    for (const QString& call : calls_[verb + " " + victim]) count += concerns(how, call);
    const int tries = victim == "1" || verb == "resume" ? 1 : 2;
    const int stride = every_call ? 1 : std::max(1, count / tries);
    for (int call = every_call ? 1 : (stride + 1) / 2; call <= count; call += stride) {
      fail_call(verb, victim, how, call);
      if (QTest::currentTestFailed() && !every_call) return;
    }
  }

  void a_limit_of_the_shell_is_an_error_in_words_data() {
    const Rows<QString, int, QString> row;
    // The shell counts files in blocks of 512 bytes. Two ranks share 3 MiB each, and a little more to meet in.
    row("files of 32 KiB", "ulimit -f 64", 2, "the memory that the ranks share takes a file of 6.0 MiB");
    row("files of 6 MiB", "ulimit -f 12288", 2, "a file may hold at most 6.0 MiB (ulimit -f)");
    row("16 open files", "ulimit -n 16", 2, "2 ranks may need 40 open files, and the limit is 16");
    row("39 open files", "ulimit -n 39", 2, "ulimit -n 40");
    row("40 open files", "ulimit -n 40", 0, "Finished 6 updates");
  }
  void a_limit_of_the_shell_is_an_error_in_words() {
    const auto [limit, status, words] = current_row<QString, int, QString>();
    const fs::path dir = fresh();
    const Outcome outcome = run(run_arguments(dir), {}, limit);
    QVERIFY2(outcome.status == status && outcome.said.count(words) == 1, qPrintable(outcome.said));
    bring_to_its_end(dir, outcome);
  }

  void a_run_needs_no_dev_shm() {
    const QString hides = "umount -l /dev/shm 2>/dev/null; mount -t tmpfs -o ro none /dev/shm";
    QProcess probe;
    probe.start("unshare", {"-rm", "sh", "-c", hides});
    probe.waitForFinished();
    if (probe.exitStatus() != QProcess::NormalExit || probe.exitCode() != 0)
      QSKIP("this system lets nobody mount anything");
    const fs::path dir = fresh();
    const Outcome outcome =
        run(run_arguments(dir), {}, "unshare -rm sh -c '" + hides + "; exec \"$@\"' sh \"$@\"; exit $?; true");
    QVERIFY2(outcome.status == 0, qPrintable(outcome.said));
    bring_to_its_end(dir, outcome);
  }

  void a_supervisor_killed_before_its_summary_leaves_a_finished_run() {
    const fs::path dir = fresh();
    const Outcome killed =
        run(run_arguments(dir), {{"supervisor", "KILL", 1, dir / ".summary.json.part", dir.string() + ".log"}});
    QVERIFY2(killed.status == -1 && !fs::exists(dir / "summary.json"), qPrintable(killed.said));
    QVERIFY(eventually([&] { return ranks_of_run(dir).empty(); }, 35s));
    const auto listed = list_runs(dir.parent_path());
    const auto found =
        std::find_if(listed.begin(), listed.end(), [&](const RunSummary& each) { return each.dir == dir; });
    QVERIFY(found != listed.end() && found->state == "finished" && found->weights_sha256 == whole_ &&
            found->updates == 6);
    const Outcome shown = run({"show", QString::fromStdString(dir)});
    QVERIFY2(shown.status == 0 && shown.said.contains("finished"), qPrintable(shown.said));
    QVERIFY2(shown.said.contains("6 of 6") && shown.said.contains(QString::fromStdString(whole_)),
             qPrintable(shown.said));
    bring_to_its_end(dir, killed);
  }
};

static const accrue::test::TestFile test_file(__FILE__, [](int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--every") == 0) {
    every_call = true;
    qputenv("QTEST_FUNCTION_TIMEOUT", "36000000");
    argv[1] = argv[0];
    --argc;
    ++argv;
  }
  TestFailingDisk tests;
  return QTest::qExec(&tests, argc, argv);
});
#include "test_failing_disk.moc"
