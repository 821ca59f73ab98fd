// SPDX-License-Identifier: Apache-2.0
// accrue-run launch: any program as the ranks of one world. The programs here are shell scripts: nothing in them knows
// of Accrue.
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>

#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_launch {

using namespace accrue::test;

namespace {

/// Ranks speak in any order.
QStringList sorted_lines(const QString& text) {
  auto lines = text.split('\n', Qt::SkipEmptyParts);
  lines.sort();
  return lines;
}

/// A process is gone once it is reaped or waits to be, regardless of its parent.
bool isGone(qint64 pid) {
  QFile stat(QStringLiteral("/proc/%1/stat").arg(pid));
  if (!stat.open(QIODevice::ReadOnly)) return true;
  const QByteArray text = stat.readAll();
  return text.mid(text.lastIndexOf(')') + 2, 1) == "Z";
}

const QString waits = QStringLiteral("tail -f /dev/null");

}  // namespace

class TestLaunch : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  int count_ = 0;

  QString path(const QString& name) const { return temporary_.filePath(name); }
  QString fresh() { return path(QStringLiteral("place%1").arg(++count_)); }
  /// A new folder that is there.
  QString made() {
    const QString dir = fresh();
    return QDir().mkpath(dir) ? dir : QString();
  }

  static Program begin(const QStringList& arguments, const QStringList& environment = {}) {
    return Program(programPath("accrue-run"), QStringList{"launch"} + arguments, environment);
  }
  static Outcome run(const QStringList& arguments, const QStringList& environment = {}) {
    return begin(arguments, environment).finish();
  }
  /// The lines of a run's standard output.
  static QStringList lines_of(const QStringList& arguments, const QStringList& environment = {}) {
    return sorted_lines(run(arguments, environment).out);
  }

  static QStringList script(int ranks, const QString& text) {
    return {"-n", QString::number(ranks), "--", "sh", "-c", text};
  }

  /// Returns the process ids of each rank and its children, once all have written them to `dir`.
  static QList<qint64> processes(const QString& dir, int expected) {
    QList<qint64> found;
    for (const auto& name : QDir(dir).entryList(QDir::Files)) {
      QFile file(dir + '/' + name);
      if (!file.open(QIODevice::ReadOnly)) continue;
      const auto text = QString::fromUtf8(file.readAll());
      if (!text.endsWith('\n')) continue;
      for (const auto& word : text.split(QRegularExpression("\\s+"), Qt::SkipEmptyParts)) found << word.toLongLong();
    }
    return found.size() == expected ? found : QList<qint64>{};
  }

  /// Writes the rank's process and that of a child which waits, then continues with `then`.
  static QString writesItsProcesses(const QString& dir, const QString& then) {
    return QStringLiteral("%1 & echo $$ $! > %2/$RANK; %3").arg(waits, dir, then);
  }

 private Q_SLOTS:
  void ranks_learn_who_they_are_and_speak_under_their_number() {
    const auto outcome = run(script(
        2, "echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here, at $MASTER_ADDR; echo loud >&2"));
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    QCOMPARE(sorted_lines(outcome.out),
             (QStringList{"[0] rank 0 of 2, 0 of 2 here, at 127.0.0.1", "[1] rank 1 of 2, 1 of 2 here, at 127.0.0.1"}));
    QCOMPARE(sorted_lines(outcome.err), (QStringList{"[0] loud", "[1] loud"}));
  }

  void ranks_share_a_port_and_the_cores() {
    const auto outcome = run(script(2, "echo $MASTER_PORT; test \"$MASTER_PORT\" -gt 1023"));
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    const auto ports = sorted_lines(outcome.out);
    QCOMPARE(ports.size(), 2);
    QCOMPARE(ports[0].mid(4), ports[1].mid(4));
    QCOMPARE(lines_of({"-n", "1", "--threads", "3", "--", "sh", "-c", "echo $OMP_NUM_THREADS"}), QStringList{"[0] 3"});
    const auto many = run({"-n", "100", "--", "sh", "-c", "test $OMP_NUM_THREADS -ge 1"});
    QVERIFY2(many.status == 0, qPrintable(many.err));
  }

  void ranks_share_a_secret_that_no_other_start_has() {
    const auto once = lines_of(script(2, "echo $ACCRUE_RUN_SECRET"));
    const auto again = lines_of(script(1, "echo $ACCRUE_RUN_SECRET"));
    QCOMPARE(once.size(), 2);
    QCOMPARE(once[0].mid(4).size(), 32);  // 128 bits
    QCOMPARE(once[0].mid(4), once[1].mid(4));
    QVERIFY(once[0].mid(4) != again[0].mid(4));
  }

  void arguments_arrive_as_they_were_typed() {
    const auto outcome = run({"-n", "1", "--", "printf", "<%s>", "[1,2]", "", "--a b", "--", "-n", "$HOME", "x=\"y\""});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    QCOMPARE(sorted_lines(outcome.out), QStringList{"[0] <[1,2]><><--a b><--><-n><$HOME><x=\"y\">"});
  }

  void only_the_listed_environment_is_handed_on() {
    const QString shows = "echo ${SECRET-none} ${TORCH_LOGS-none} ${COLOUR-none} ${RANK} ${SHAPE-none}";
    const QStringList environment{"SECRET=1", "TORCH_LOGS=all", "COLOUR=red", "RANK=7"};
    QCOMPARE(lines_of({"--", "sh", "-c", shows}, environment), QStringList{"[0] none all none 0 none"});
    const QStringList more{"--env", "COLOUR", "--env", "SHAPE=[a,b]=c", "--env", "RANK=9", "--", "sh", "-c", shows};
    QCOMPARE(lines_of(more, environment), QStringList{"[0] none all red 0 [a,b]=c"});
    const auto unset = run({"--env", "NOWHERE", "--", "true"});
    QCOMPARE(unset.status, 2);
    QVERIFY2(unset.err.contains("NOWHERE"), qPrintable(unset.err));
  }

  void variables_that_the_library_reads_are_handed_on() {
    const QString shows =
        "echo ${ACCELERATE_GRADIENT_ACCUMULATION_STEPS-none} ${OMP_NUM_THREADS} ${OMP_WAIT_POLICY} "
        "${OMP_SCHEDULE-none} ${MEGATRON_LM_TP_DEGREE-none}";
    const QStringList environment{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS=3", "OMP_NUM_THREADS=5",
                                  "OMP_WAIT_POLICY=active", "OMP_SCHEDULE=static", "MEGATRON_LM_TP_DEGREE=7"};
    QCOMPARE(lines_of({"--", "sh", "-c", shows}, environment), QStringList{"[0] 3 5 active static 7"});
    QCOMPARE(lines_of({"--threads", "2", "--", "sh", "-c", shows}, environment),
             QStringList{"[0] 3 2 active static 7"});
  }

  void what_a_rank_writes_last_is_heard() {
    const auto outcome = run(script(2, "printf 'no end of line'; head -c 60000 /dev/zero | tr '\\0' x >&2"));
    QCOMPARE(outcome.status, 0);
    QCOMPARE(sorted_lines(outcome.out), (QStringList{"[0] no end of line", "[1] no end of line"}));
    QCOMPARE(outcome.err.count('x'), 2 * 60000);
  }

  void more_output_than_a_pipe_holds_stops_nobody() {
    const auto outcome = run(script(2, "seq 100000"));
    QCOMPARE(outcome.status, 0);
    QCOMPARE(outcome.out.count('\n'), 2 * 100000);
  }

  void a_rank_that_fails_ends_the_others_data() {
    const Rows<QString, QString> row;
    row("exit status", "exit 3", "rank 1 failed with exit status 3");
    row("signal", "kill -9 $$", "rank 1 was killed by signal 9");
  }
  void a_rank_that_fails_ends_the_others() {
    const auto [end, says] = current_row<QString, QString>();
    const QString dir = made();
    // Rank 1 fails when all have written their names.
    const QString then =
        QStringLiteral("if [ $RANK = 1 ]; then until [ -s %1/0 ] && [ -s %1/2 ]; do :; done; %2; fi; wait")
            .arg(dir, end);
    const auto outcome = run(script(3, writesItsProcesses(dir, then)));
    QCOMPARE(outcome.status, 4);
    QVERIFY2(outcome.err.contains(says), qPrintable(outcome.err));
    QCOMPARE(outcome.err.count("rank "), 1);  // those that were ended are not to blame
    const auto pids = processes(dir, 6);
    QCOMPARE(pids.size(), 6);
    for (const auto pid : pids) QTRY_VERIFY_WITH_TIMEOUT(isGone(pid), 5000);
  }

  void nothing_is_started_that_is_no_program_data() {
    const Rows<QStringList> row;
    row("unknown name", {"accrue-has-no-such-program"});
    row("missing file", {"./nowhere/train"});
    row("folder", {"/tmp"});
    row("no leave to execute", {"/etc/passwd"});
    row("nothing named", {});
  }
  void nothing_is_started_that_is_no_program() {
    const auto [command] = current_row<QStringList>();
    const auto outcome = run(QStringList{"-n", "2", "--"} + command);
    QCOMPARE(outcome.status, 2);
    QVERIFY(outcome.out.isEmpty());
    QVERIFY2(outcome.err.contains(command.isEmpty() ? "no program is named" : command.first()),
             qPrintable(outcome.err));
  }

  void bad_options_are_refused() {
    for (const auto& arguments : {QStringList{"-n", "0", "--", "true"}, QStringList{"-n", "two", "--", "true"},
                                  QStringList{"--loud", "--", "true"}, QStringList{"true"}}) {
      const auto outcome = run(arguments);
      QCOMPARE(outcome.status, 2);
      QVERIFY(!outcome.err.isEmpty());
    }
  }

  void an_interrupt_ends_the_ranks_and_a_second_one_kills_them_data() {
    const Rows<QString, int> row;
    row("one", "trap 'echo saved; exit 0' INT", 1);
    row("two", "trap '' INT TERM", 2);
  }
  void an_interrupt_ends_the_ranks_and_a_second_one_kills_them() {
    const auto [trap, interrupts] = current_row<QString, int>();
    const QString dir = made();
    Program program = begin(script(2, trap + "; " + writesItsProcesses(dir, "wait; wait")));
    QTRY_COMPARE_WITH_TIMEOUT(processes(dir, 4).size(), 4, 10000);
    const auto pids = processes(dir, 4);
    for (int i = 1; i <= interrupts; ++i) {
      program.signal(SIGINT);
      QVERIFY2(program.says(i == 1 ? "stopping the ranks" : "killing the ranks"), program.errors());
    }
    const Outcome outcome = program.finish();
    QCOMPARE(outcome.status, 130);
    QCOMPARE(outcome.out.count("saved"), interrupts == 1 ? 2 : 0);
    for (const auto pid : pids) QTRY_VERIFY_WITH_TIMEOUT(isGone(pid), 5000);
  }

  /// A log-out sends HUP and TERM, perhaps twice: the ranks have their time all the same.
  void signals_of_a_log_out_leave_the_ranks_their_time_and_insistence_does_not() {
    const QString dir = made();
    Program program = begin(script(
        1, "trap '' INT HUP; trap 'echo asked' TERM; " + writesItsProcesses(dir, "while :; do sleep 0.05; done")));
    QTRY_COMPARE_WITH_TIMEOUT(processes(dir, 2).size(), 2, 10000);
    const auto pids = processes(dir, 2);
    program.signal(SIGHUP);
    QVERIFY2(program.says("stopping the ranks"), program.errors());
    program.signal(SIGTERM);
    QVERIFY2(program.says("stopping already"), program.errors());
    program.signal(SIGTERM);
    // The second in which the same signal is no insistence.
    QVERIFY2(!program.says("killing", 1100) && !isGone(pids[0]), program.errors());
    program.signal(SIGTERM);
    QVERIFY2(program.says("killing the ranks"), program.errors());
    QCOMPARE(program.finish().status, 130);
    for (const auto pid : pids) QTRY_VERIFY_WITH_TIMEOUT(isGone(pid), 5000);
  }

  void ranks_of_a_killed_launcher_end_with_it() {
    const QString dir = made();
    Program program = begin(script(2, writesItsProcesses(dir, "wait")));
    QTRY_COMPARE_WITH_TIMEOUT(processes(dir, 4).size(), 4, 10000);
    const auto pids = processes(dir, 4);
    program.signal(SIGKILL);
    program.finish();
    for (const auto pid : pids) QTRY_VERIFY_WITH_TIMEOUT(isGone(pid), 5000);
  }

  void the_output_is_kept_where_a_folder_is_named() {
    const QString dir = fresh();
    const auto outcome = run({"-n", "2", "--out", dir, "--", "sh", "-c", "echo out $RANK; echo err >&2"});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    for (const char* rank : {"0", "1"}) {
      QFile log(QStringLiteral("%1/ranks/%2.log").arg(dir, rank));
      QVERIFY(log.open(QIODevice::ReadOnly));
      QCOMPARE(sorted_lines(QString::fromUtf8(log.readAll())),
               (QStringList{"err", QStringLiteral("out %1").arg(rank)}));
    }
    const auto again = run({"--out", dir, "--", "echo", "started"});
    QCOMPARE(again.status, 2);
    QVERIFY(again.out.isEmpty());
    QCOMPARE(run({"--out", "/proc/nowhere", "--", "true"}).status, 5);
  }

  void a_program_that_knows_nothing_of_accrue_leaves_a_run_that_says_how_it_ended_data() {
    QTest::addColumn<QString>("script");
    QTest::addColumn<QString>("state");
    QTest::addColumn<QString>("why");
    QTest::newRow("all ranks did well") << "true"
                                        << "finished"
                                        << "";
    QTest::newRow("one failed") << "test $RANK = 0 || exit 7"
                                << "failed"
                                << "Rank 1 failed with exit status 7";
    QTest::newRow("one was killed") << "test $RANK = 0 || kill -9 $$"
                                    << "failed"
                                    << "Rank 1 was killed by signal 9";
  }
  void a_program_that_knows_nothing_of_accrue_leaves_a_run_that_says_how_it_ended() {
    QFETCH(QString, script);
    QFETCH(QString, state);
    QFETCH(QString, why);
    const QString dir = fresh();
    run({"-n", "2", "--out", dir, "--", "sh", "-c", script});
    const Outcome shown = Program(programPath("accrue-run"), {"show", dir}).finish();
    QVERIFY2(shown.status == 0, qPrintable(shown.err));
    QVERIFY2(shown.out.contains(QRegularExpression("state +" + state)), qPrintable(shown.out));
    QVERIFY2(shown.out.contains(QRegularExpression("run +sh\n")), qPrintable(shown.out));
    QVERIFY2(shown.out.contains(why), qPrintable(shown.out));
    QVERIFY2(!shown.out.contains("problem"), qPrintable(shown.out));
    const Outcome resumed = Program(programPath("accrue-run"), {"resume", dir}).finish();
    QCOMPARE(resumed.status, 2);
    QVERIFY2(resumed.err.contains("a loop of its own"), qPrintable(resumed.err));
  }
};

ACCRUE_TEST_MAIN(TestLaunch)

}  // namespace test_launch
#include "test_launch.moc"
