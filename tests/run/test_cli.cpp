// SPDX-License-Identifier: Apache-2.0
// accrue-run as a person or a script uses it: what it prints where, and how it exits.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "support/programs.h"
#include "support/table.h"
#include "support/test_program.h"

namespace test_cli {

using namespace accrue::test;

namespace {

/// Somebody who connects to a run's control socket and says nothing.
struct IdleClient {
  explicit IdleClient(const QString& socket) : fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, qPrintable(socket), sizeof address.sun_path - 1);
    connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  IdleClient(IdleClient&& other) noexcept : fd(std::exchange(other.fd, -1)), connected(other.connected) {}
  ~IdleClient() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
  bool connected = false;
};

}  // namespace

class TestCli : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  QString spec_;
  int count_ = 0;

  QString path(const QString& name) const { return temporary_.filePath(name); }
  QString fresh() { return path(QStringLiteral("run%1").arg(++count_)); }

  QStringList environment(const QString& script) const {
    return {"ACCRUE_RANK_PROGRAM=" + programPath("accrue-fake-rank"), "ACCRUE_FAKE_RANK=" + script,
            "XDG_RUNTIME_DIR=" + path("runtime"), "XDG_DATA_HOME=" + path("data")};
  }
  Program begin(const QStringList& arguments, const QString& script, const QStringList& more = {}) const {
    return Program(programPath("accrue-run"), arguments, environment(script) + more);
  }
  Outcome run(const QStringList& arguments, const QString& script = "micro_ms=1", const QStringList& more = {}) const {
    return begin(arguments, script, more).finish();
  }
  /// A run that does not end by itself.
  QStringList endless(const QString& dir) const { return {"run", spec_, "--out", dir, "--set", "run.updates=100000"}; }
  /// The same in the background; its folder.
  QString detached(const QString& script, const QStringList& settings = {}) {
    const QString dir = fresh();
    const Outcome started = run(endless(dir) + QStringList{"--detach"} + settings, script);
    if (started.status != 0 || started.out != dir + "\n") qFatal("%s", qPrintable(started.out + started.err));
    return dir;
  }
  QJsonObject shown(const QString& dir) const { return object(run({"show", dir, "--json"}).out); }
  static qsizetype events_with(const QString& dir, const char* text) {
    QFile file(dir + "/events.jsonl");
    return file.open(QIODevice::ReadOnly) ? file.readAll().count(text) : 0;
  }

  /// Process ids of a run's ranks, from its record.
  static QVector<pid_t> ranks_in(const QString& dir) {
    QVector<pid_t> pids;
    QFile events(dir + "/events.jsonl");
    if (!events.open(QIODevice::ReadOnly)) return pids;
    for (const QByteArray& line : events.readAll().split('\n')) {
      const auto event = QJsonDocument::fromJson(line).object();
      if (event["kind"] == "rank_ready") pids += static_cast<pid_t>(event["pid"].toInt());
    }
    return pids;
  }

  static QJsonObject object(const QString& text) { return QJsonDocument::fromJson(text.toUtf8()).object(); }

  void write(const QString& name, const QByteArray& text) const {
    QFile file(path(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
  }

 private Q_SLOTS:
  void initTestCase() {
    QDir(temporary_.path()).mkdir("runtime");
    write("small.accrue",
          "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [4]\n[data]\nkind = \"synthetic\"\nsamples = 4096\n"
          "[accumulation]\nsteps = 4\nmicro_batch = 2\n[parallel]\ndata = 2\n[launch]\nthreads_per_rank = 1\n"
          "[run]\nupdates = 5\n");
    spec_ = path("small.accrue");
  }

  void a_plan_can_be_asked_of_every_dialect() {
    write("tail.accrue",
          "accrue = 1\n[model]\nkind = \"mlp\"\nhidden = [4]\n[data]\nkind = \"synthetic\"\nsamples = 10\n"
          "[accumulation]\nsteps = 4\nmicro_batch = 1\n[run]\nepochs = 1\n");
    const Outcome text = run({"plan", path("tail.accrue"), "--dialects"});
    QCOMPARE(text.status, 0);
    for (const char* part : {"llm-pytorch (llm)", "bb|", "never seen", "divided by 4 (half weight)", "the spec's own"})
      QVERIFY2(text.out.contains(QLatin1String(part)), qPrintable(text.out));
    const Outcome json = run({"plan", path("tail.accrue"), "--dialects", "--json"});
    QCOMPARE(object(json.out)["dialects"].toArray().size(), 5);
    QCOMPARE(run({"plan", path("none.accrue"), "--dialects"}).status, 2);
  }

  /// Code on standard output alone, what is missing in it on standard error.
  void a_spec_is_exported_and_what_is_missing_is_said() {
    const Outcome code = run({"export", spec_, "--to", "pytorch", "--set", "checkpoint.every_updates=2"});
    QCOMPARE(code.status, 0);
    QVERIFY2(code.out.startsWith("#!/usr/bin/env python3\n"), qPrintable(code.out));
    QVERIFY2(code.err.contains("not carried over: checkpoint.every_updates = 2: "), qPrintable(code.err));
    const QString file = path("train.py");
    const Outcome saved = run({"export", spec_, "--to", "accelerate", "--out", file, "--json"});
    QCOMPARE(saved.status, 0);
    QCOMPARE(object(saved.out)["not_carried"].toArray().size(), 0);
    QVERIFY(QFile::exists(file));
    const Outcome refused = run({"export", spec_, "--to", "megatron"});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("model.kind"), qPrintable(refused.err));
    QCOMPARE(run({"export", spec_, "--to", "caffe"}).status, 2);
  }

  void a_record_goes_out_and_comes_in() {
    const QString dir = fresh();
    QCOMPARE(run({"run", spec_, "--out", dir}).status, 0);
    QCOMPARE(run({"export", dir, "--to", "chrome-trace"}).status, 2);  // where to?
    const Outcome trace = run({"export", dir, "--to", "chrome-trace", "--out", path("trace.json")});
    QCOMPARE(trace.status, 0);
    QVERIFY2(trace.err.startsWith("2 ranks, "), qPrintable(trace.err));
    QCOMPARE(run({"export", dir, "--to", "tensorboard", "--out", path("board")}).status, 0);
    QCOMPARE(run({"export", dir, "--to", "tensorboard", "--out", path("board")}).status, 2);  // holds a run's files
    const QString imported = fresh();
    const Outcome import = run({"import", path("board"), "--out", imported});
    QCOMPARE(import.status, 0);
    QVERIFY2(import.err.contains("the loss is \"loss\""), qPrintable(import.err));
    QCOMPARE(shown(imported)["curve"].toObject()["loss"].toArray().size(), 5);
    QCOMPARE(run({"import", path("board"), "--out", imported}).status, 2);  // the folder is taken
    QCOMPARE(run({"resume", imported}).status, 2);
  }

  void a_bundle_takes_runs_to_another_folder() {
    const QString dir = fresh();
    QCOMPARE(run({"run", spec_, "--out", dir}).status, 0);
    const QString file = path("home.accrue-bundle");
    QCOMPARE(run({"bundle", dir, "--out", path("home.zip")}).status, 2);
    const Outcome bundled = run({"bundle", dir, "--out", file, "--spec", spec_});
    QCOMPARE(bundled.status, 0);
    QCOMPARE(bundled.out, file + "\n");
    QVERIFY2(bundled.err.startsWith("accrue-run: 1 run, "), qPrintable(bundled.err));
    const QString runs = fresh();
    const QStringList import{"import", file, "--into", runs};
    // A disk that takes 1 KiB a file: said, and nothing is left over.
    const Outcome full =
        Program("/bin/bash", QStringList{"-c", "ulimit -f 1; exec \"$0\" \"$@\"", programPath("accrue-run")} + import,
                environment({}))
            .finish();
    QCOMPARE(full.status, 5);
    QVERIFY2(full.err.contains("cannot be written, and nothing was imported"), qPrintable(full.err));
    QVERIFY(QDir(runs).isEmpty(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot));
    const Outcome imported = run(import + QStringList{"--spec", path("from-bundle.accrue")});
    QCOMPARE(imported.status, 0);
    const QJsonObject original = shown(dir);
    const QJsonObject copy = shown(imported.out.trimmed());
    QCOMPARE(imported.out, runs + "/" + original["run_id"].toString() + "\n");
    QCOMPARE(copy["curve"], original["curve"]);
    QCOMPARE(copy["problems"], original["problems"]);
    QCOMPARE(run({"plan", path("from-bundle.accrue")}).status, 0);
    const Outcome again = run(import);
    QCOMPARE(again.status, 0);
    QVERIFY2(again.err.contains("is there already, with the same record"), qPrintable(again.err));
    QVERIFY2(again.err.contains("--spec FILE writes it"), qPrintable(again.err));
    QCOMPARE(run({"import", file, "--out", fresh()}).status, 2);
    const Outcome resumed = run({"resume", imported.out.trimmed()});
    QCOMPARE(resumed.status, 2);
    QVERIFY2(resumed.err.contains("was imported, and its checkpoints stayed"), qPrintable(resumed.err));
    const QString bare = path("bare.accrue-bundle");
    QCOMPARE(run({"bundle", dir, "--out", bare}).status, 0);
    const Outcome without = run({"import", bare, "--into", fresh(), "--spec", path("none-there.accrue")});
    QCOMPARE(without.status, 0);
    QVERIFY2(without.err.contains("the bundle carries no spec"), qPrintable(without.err));
    QVERIFY(!QFile::exists(path("none-there.accrue")));
  }

  void help_and_version_are_done() {
    QCOMPARE(run({"--help"}).status, 0);
    QCOMPARE(run({"run", "--help"}).status, 0);
    QVERIFY(run({"--version"}).out.contains(QRegularExpression("[0-9]+\\.[0-9]+\\.[0-9]+")));
  }

  void every_problem_of_a_spec_is_told_with_its_place() {
    write("bad.accrue", "accrue = 1\n[accumulation]\nsteps = 0\nmicro_batch = \"two\"\nstep = 3\n");
    const auto outcome = run({"run", path("bad.accrue"), "--out", fresh()});
    QCOMPARE(outcome.status, 2);
    QVERIFY(outcome.out.isEmpty());
    for (const char* place : {"bad.accrue:3", "bad.accrue:4", "bad.accrue:5"})
      QVERIFY2(outcome.err.contains(place), qPrintable(outcome.err));
    QVERIFY(!QFile::exists(path(QStringLiteral("run%1").arg(count_))));
  }

  void what_cannot_be_read_hides_no_other_problem() {
    write("two.accrue",
          "accrue = 1\n[accumulation]\ndialect = \"accelerate\"\nmax_iters = 4\n[data]\nsamples = \"many\"\n"
          "[run]\nupdates = 2\nepochs = 1\n");
    const auto outcome = run({"plan", path("two.accrue")});
    QCOMPARE(outcome.status, 2);
    for (const char* key : {"data.samples", "accumulation.max_iters", "run.epochs"})
      QVERIFY2(outcome.err.contains(key), qPrintable(outcome.err));
    write("kind.accrue", "accrue = 1\n[data]\nkind = \"inlin\"\nx = [[1.0]]\ny = [[1.0]]\n");
    const auto misspelt = run({"plan", path("kind.accrue")});
    QCOMPARE(misspelt.err.count("error:"), 1);  // nothing is blamed for a kind that is not meant
  }

  void trace_leaves_out_windows_that_overflow_on_purpose() {
    const auto positions = [&](const char* overflow) {
      const auto outcome = run({"trace", spec_, "--set", "accumulation.overflow=" + QString(overflow), "--set",
                                "run.updates=3", "--set", "teaching.overflow_at=[6]"});
      QStringList at;
      for (const auto& line : outcome.out.split('\n', Qt::SkipEmptyParts))
        if (object(line)["update"].toBool()) at << QString::number(object(line)["schedule_position"].toInt());
      return at.join(' ');
    };
    QCOMPARE(positions("hold"), QStringLiteral("1 1 2"));
    QCOMPARE(positions("advance"), QStringLiteral("1 2 3"));
  }

  void the_defaults_are_a_spec_and_the_schema_is_json() {
    const auto defaults = run({"spec", "--defaults"});
    QCOMPARE(defaults.status, 0);
    QVERIFY(defaults.out.contains("[accumulation]"));
    const auto schema = run({"spec", "--schema"});
    QVERIFY(object(schema.out).contains("properties"));
  }

  void plan_prints_numbers_and_trains_nothing() {
    const auto text = run({"plan", spec_});
    QCOMPARE(text.status, 0);
    QVERIFY(text.out.contains("16"));  // 2 samples x 4 micro-steps x 2 ranks
    const auto json = run({"plan", spec_, "--json", "--set", "accumulation.steps=8"});
    QCOMPARE(json.status, 0);
    QVERIFY2(!object(json.out).isEmpty(), qPrintable(json.out));
  }

  void trace_spells_every_micro_step_as_the_contract_does() {
    const auto outcome = run({"trace", spec_, "--set", "accumulation.dialect=accelerate", "--set", "run.updates=2"});
    QCOMPARE(outcome.status, 0);
    const auto lines = outcome.out.split('\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 8);
    QVERIFY2(lines[3].startsWith(R"({"micro_step": 4, "epoch": 0, "batch": 3, "window": 0, "position": 3, )"
                                 R"("window_size": 4, "divisor": 4, "sync": true, "update": true, "reason": "full", )"
                                 R"("schedule_position": )"),
             qPrintable(lines[3]));
    QVERIFY(lines[0].contains(R"("sync": false, "update": false, "reason": "")"));
    for (const auto& line : lines) QCOMPARE(object(line).keys().size(), 12);
    const auto tokens = run({"trace", spec_, "--set", "run.updates=1"});
    QVERIFY2(tokens.out.contains(R"("divisor": null)"), qPrintable(tokens.out));
  }

  void schedule_prints_what_each_stage_does() {
    write("gpt.accrue",
          "accrue = 1\n[model]\nkind = \"gpt\"\n[data]\nkind = \"synthetic\"\n[run]\nupdates = 1\n"
          "[accumulation]\nsteps = 2\n[parallel]\npipeline = 2\ntensor = 2\n");
    const auto outcome = run({"schedule", path("gpt.accrue")});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    QCOMPARE(outcome.out,
             QString("one_forward_one_backward: stages 2, chunks per stage 1, micro-steps 2, bubble 33.3 %\n"
                     "\nstage 0, ranks 0 1, at most 2 forward without their backward\n"
                     "  F1 F1>1 F2 F2>1 B1<1 B1 B2<1 B2\n"
                     "\nstage 1, ranks 2 3, at most 1 forward without their backward\n"
                     "  F1<0 F1 B1 F2<0 B1>0 F2 B2 B2>0\n"));
    const auto json = object(run({"schedule", path("gpt.accrue"), "--json"}).out);
    QCOMPARE(json["schedule"].toString(), QString("one_forward_one_backward"));
    QCOMPARE(json["lists"].toArray()[1].toObject()["operations"].toArray()[0].toObject(),
             object(R"({"action": "receive_input", "micro_step": 0, "chunk": 0, "peer": 0})"));
  }

  void grid_prints_the_groups_of_every_axis() {
    const QStringList layout{path("gpt.accrue"), "--set", "parallel.data=2"};
    const auto outcome = run(QStringList("grid") + layout);
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    for (const char* line : {"     5      0        1      1\n", "\ndata               [0 2] [1 3] [4 6] [5 7]\n",
                             "\nmodel              [0 1 4 5] [2 3 6 7]\n", "\nposition_embedding [0] [1] [2] [3]\n"})
      QVERIFY2(outcome.out.contains(line), qPrintable(outcome.out));
    const auto json = object(run(QStringList("grid") + layout + QStringList("--json")).out);
    QCOMPARE(json["ranks"].toArray().size(), 8);
    QCOMPARE(json["groups"].toObject()["pipeline"].toArray()[0].toArray(), QJsonArray({0, 4}));
  }

  void a_run_prints_its_folder_and_nothing_else_on_standard_output() {
    const QString dir = fresh();
    const auto outcome = run({"run", spec_, "--out", dir});
    QVERIFY2(outcome.status == 0, qPrintable(outcome.err));
    QCOMPARE(outcome.out, dir + "\n");
    QVERIFY2(outcome.err.contains("update 5/5"), qPrintable(outcome.err));
    QVERIFY(outcome.err.contains("loss"));
    QVERIFY(!outcome.err.contains('\r'));  // no bar without a terminal

    const auto text = run({"show", dir});
    QCOMPARE(text.status, 0);
    QVERIFY2(text.out.contains("finished") && text.out.contains("5 of 5"), qPrintable(text.out));
    const auto json = shown(dir);
    QCOMPARE(json["state"].toString(), "finished");
    QCOMPARE(json["updates"].toInt(), 5);
    QCOMPARE(json["curve"].toObject()["loss"].toArray().size(), 5);

    QCOMPARE(run({"run", spec_, "--out", dir}).status, 2);  // the folder is taken
    QCOMPARE(run({"resume", dir}).status, 2);               // complete
    const auto stopped = run({"stop", dir});
    QVERIFY2(stopped.status == 2 && !stopped.err.contains("resume"), qPrintable(stopped.err));  // no process trains it
  }

  void quiet_runs_are_quiet() {
    const auto outcome = run({"run", spec_, "--out", fresh(), "--quiet"});
    QCOMPARE(outcome.status, 0);
    QVERIFY2(outcome.err.isEmpty(), qPrintable(outcome.err));
  }

  void set_changes_the_run_and_compare_shows_it() {
    const QString one = fresh();
    const QString two = fresh();
    QCOMPARE(run({"run", spec_, "--out", one}).status, 0);
    QCOMPARE(run({"run", spec_, "--out", two, "--set", "accumulation.steps=8", "--set", "run.updates=3"}).status, 0);
    const auto text = run({"compare", one, two});
    QCOMPARE(text.status, 0);
    QVERIFY2(text.out.contains("accumulation.steps") && text.out.contains("4 -> 8"), qPrintable(text.out));
    const auto json = object(run({"compare", one, two, "--json"}).out);
    const auto points = json["points"].toArray();
    QCOMPARE(points.size(), 2);  // after 32 and 64 samples
    QCOMPARE(points[0].toObject()["samples"].toInt(), 32);
    QCOMPARE(points[0].toObject()["losses"].toArray().size(), 2);
    const auto same = run({"compare", one, one});
    QVERIFY(same.out.contains("equal in every bit") && same.out.contains("the specs are equal"));
    // A third run meets the first after 48 samples, and the second never: what the first two share is not hidden.
    const QString three = fresh();
    QCOMPARE(run({"run", spec_, "--out", three, "--set", "accumulation.steps=3"}).status, 0);
    const auto all = run({"compare", one, two, three});
    const auto line_of = [](const QString& out, const QString& beginning) {
      const auto lines = out.split('\n');
      const auto found = std::ranges::find_if(lines, [&](const QString& line) { return line.startsWith(beginning); });
      return found == lines.end() ? QString() : *found;
    };
    QVERIFY2(!line_of(all.out, "1 and 2: ").isEmpty(), qPrintable(all.out));
    QCOMPARE(line_of(all.out, "1 and 2: "), line_of(text.out, "1 and 2: "));
    const auto shared = object(run({"compare", one, two, three, "--json"}).out)["runs"].toArray();
    QCOMPARE(shared[1].toObject()["shared_points"].toInt(), 2);
    QCOMPARE(shared[2].toObject()["shared_points"].toInt(), 1);
  }

  void failures_have_their_exit_status_data() {
    const Rows<QString, int, QString> row;
    row("killed rank", "micro_ms=2,die=1@6:9", 4, "Rank 1 was killed (signal 9)");
    row("NaN under a stop rule", "micro_ms=2,nan=6", 3, "NaN");
    row("disk", "micro_ms=2,fail=0@6:disk", 5, "The script says so");
    row("data", "micro_ms=2,fail=0@6:data", 2, "The script says so");
  }
  void failures_have_their_exit_status() {
    const auto [script, status, says] = current_row<QString, int, QString>();
    const auto outcome = run({"run", spec_, "--out", fresh()}, script);
    QVERIFY2(outcome.status == status, qPrintable(outcome.err));
    QVERIFY2(outcome.err.contains(says), qPrintable(outcome.err));
    if (status != 3) QVERIFY2(outcome.err.count(says) == 1, qPrintable(outcome.err));
  }

  void an_interrupt_stops_and_a_second_one_kills_data() {
    const Rows<QString, int> row;
    row("one", "micro_ms=10", 1);
    row("two", "micro_ms=10,deaf=1,stall=1@9", 2);
  }
  void an_interrupt_stops_and_a_second_one_kills() {
    const auto [script, interrupts] = current_row<QString, int>();
    Program program = begin(endless(fresh()), script);
    QVERIFY2(program.says("update 1/"), program.errors());
    for (int i = 1; i <= interrupts; ++i) {
      program.signal(SIGINT);
      QVERIFY2(program.says(i == 1 ? "saving a checkpoint at the end of this update" : "killing"), program.errors());
    }
    QCOMPARE(program.finish().status, 130);
  }

  void signals_of_a_log_out_end_in_a_checkpoint_data() {
    const Rows<QVector<int>, bool> row;
    row("INT to all", {SIGINT}, true);
    row("TERM to all", {SIGTERM}, true);
    row("HUP to all", {SIGHUP}, true);
    row("HUP and TERM to accrue-run", {SIGHUP, SIGTERM}, false);
    row("TERM, HUP and TERM to all", {SIGTERM, SIGHUP, SIGTERM}, true);
  }
  void signals_of_a_log_out_end_in_a_checkpoint() {
    const auto [signals, whole_tree] = current_row<QVector<int>, bool>();
    const QString dir = fresh();
    Program program = begin(endless(dir), "micro_ms=20");
    QVERIFY2(program.says("update 1/"), program.errors());
    QVector<pid_t> targets{program.pid()};
    if (whole_tree) targets += ranks_in(dir);
    QCOMPARE(targets.size(), whole_tree ? 3 : 1);
    for (const int number : signals) {
      for (const pid_t target : targets) ::kill(target, number);
      // The time between the signals at the end of a session. The same signal so soon does not count as insistence.
      QVERIFY2(!program.says("killing", 10), program.errors());
    }
    QVERIFY2(program.finish().status == 130, program.errors());
    const auto json = shown(dir);
    QCOMPARE(json["state"].toString(), "stopped");
    QCOMPARE(json["last_checkpoint"].toString(), QStringLiteral("step-%1").arg(json["updates"].toInt()));
  }

  /// Ranks that would save for minutes are not waited for: the run ends without that checkpoint.
  void a_log_out_does_not_wait_for_a_checkpoint_that_takes_minutes() {
    const QString dir = fresh();
    Program program = begin(endless(dir), "micro_ms=20,save_ms=600000");
    QVERIFY2(program.says("update 1/"), program.errors());
    QElapsedTimer since;
    since.start();
    program.signal(SIGTERM);
    QVERIFY2(program.says("saving a checkpoint"), program.errors());
    QVERIFY2(program.finish(40000).status == 130, program.errors());
    QVERIFY2(since.elapsed() > 15000 && since.elapsed() < 30000, qPrintable(QString::number(since.elapsed())));
    QCOMPARE(shown(dir)["last_checkpoint"].toString(), QString());
  }

  void an_end_in_the_middle_of_a_checkpoint_leaves_no_part_of_it() {
    const QString dir = fresh();
    Program program =
        begin({"run", spec_, "--out", dir, "--set", "checkpoint.every_updates=1"}, "micro_ms=1,save_ms=60000");
    const auto entries = [&dir] {
      return QDir(dir + "/checkpoints").entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    };
    QTRY_COMPARE_WITH_TIMEOUT(entries(), QStringList{".step-1.part"}, 10000);
    for (const char* answer : {"saving", "killing"}) {
      program.signal(SIGINT);
      QVERIFY2(program.says(answer), program.errors());
    }
    program.finish();
    QCOMPARE(entries(), QStringList());
    QVERIFY(!run({"show", dir}).out.contains("loss 0"));
  }

  void the_same_signal_again_after_a_second_kills() {
    const QString dir = fresh();
    Program program = begin(endless(dir), "micro_ms=10,deaf=1,stall=1@9");
    // After two updates of four micro-steps no boundary is reached any more at which the run could end.
    QTRY_COMPARE_WITH_TIMEOUT(events_with(dir, "\"kind\":\"update\""), 2, 10000);
    program.signal(SIGTERM);
    QVERIFY2(program.says("saving"), program.errors());
    program.signal(SIGTERM);
    QVERIFY2(program.says("already") && !program.says("killing", 0), program.errors());
    QVERIFY2(QTest::qWaitFor(
                 [&] {
                   program.signal(SIGTERM);
                   return program.says("killing the ranks", 100);
                 },
                 10000),
             program.errors());
    QCOMPARE(program.finish().status, 130);
  }

  void of_two_resumes_at_once_one_trains_and_the_other_is_refused() {
    for (int trial = 0; trial < 10; ++trial) {
      const QString dir = fresh();
      Program first = begin({"run", spec_, "--out", dir, "--set", "run.updates=400"}, "micro_ms=5");
      QVERIFY2(first.says("update 1/"), first.errors());
      first.signal(SIGTERM);
      first.finish();
      Program one = begin({"resume", dir}, "micro_ms=0");
      Program other = begin({"resume", dir}, "micro_ms=0");
      const std::set<int> statuses{one.finish().status, other.finish().status};
      QVERIFY2(statuses == (std::set<int>{0, 2}), (QByteArray(one.errors()) + other.errors()).constData());
      QCOMPARE(events_with(dir, "\"run_started\""), 2);  // the run and one resume
    }
  }

  void a_stop_reaches_a_run_that_many_idle_clients_hold_open() {
    const QString dir = detached("micro_ms=10");
    QFile plan(dir + "/plan.json");
    QVERIFY(plan.open(QIODevice::ReadOnly));
    const auto id = QJsonDocument::fromJson(plan.readAll()).object()["run_id"].toString();
    std::vector<IdleClient> idle;
    for (int i = 0; i < 40; ++i) {
      idle.emplace_back(path("runtime/accrue/" + id + ".sock"));
      QVERIFY(idle.back().connected);
    }
    const auto stopped = run({"stop", dir});
    QVERIFY2(stopped.status == 0, qPrintable(stopped.err));
    QVERIFY2(stopped.err.contains("the run is stopped"), qPrintable(stopped.err));
    QCOMPARE(shown(dir)["state"].toString(), "stopped");
  }

  void a_stop_that_cannot_reach_the_run_is_no_success() {
    const QString dir = detached("micro_ms=10");
    const QString socket = QDir(path("runtime/accrue")).entryList({"*.sock"}, QDir::System).value(0);
    const QString place = path("runtime/accrue/" + socket);
    QVERIFY(!socket.isEmpty() && QFile::rename(place, place + ".away"));
    const auto lost = run({"stop", dir});
    QVERIFY2(lost.status == 4 && lost.err.contains("cannot be reached"), qPrintable(lost.err));
    QVERIFY(QFile::rename(place + ".away", place));
    QCOMPARE(run({"stop", dir}).status, 0);
  }

  void closed_standard_streams_leave_the_record_clean() {
    const QString dir = fresh();
    const QStringList closed{"-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", programPath("accrue-run")};
    Program program("/bin/sh", closed + QStringList{"run", spec_, "--out", dir}, environment("micro_ms=1"));
    QCOMPARE(program.finish().status, 0);
    QFile events(dir + "/events.jsonl");
    QVERIFY(events.open(QIODevice::ReadOnly));
    for (const QByteArray& line : events.readAll().trimmed().split('\n'))
      QVERIFY2(QJsonDocument::fromJson(line).isObject(), line.constData());
  }

  void a_quiet_run_that_fails_says_why() {
    QFile script(path("vanishing-rank"));
    QVERIFY(script.open(QIODevice::WriteOnly));
    script.write("#!/nowhere/interpreter\n");  // executable, but it cannot be started
    script.close();
    QVERIFY(script.setPermissions(QFile::ReadOwner | QFile::ExeOwner));
    const auto failed =
        run({"run", spec_, "--out", fresh(), "--quiet"}, {}, {"ACCRUE_RANK_PROGRAM=" + script.fileName()});
    QCOMPARE(failed.status, 2);
    QVERIFY2(failed.err.contains("rank 0 cannot be started"), qPrintable(failed.err));
  }

  void a_detached_run_is_followed_stopped_and_resumed() {
    const QString dir = detached("micro_ms=2", {"--set", "checkpoint.every_updates=5"});
    QCOMPARE(shown(dir)["state"].toString(), "running");
    QCOMPARE(run({"resume", dir}).status, 2);  // another process trains it

    Program viewer = begin({"attach", dir}, {});
    QVERIFY2(viewer.says("checkpoint"), viewer.errors());
    viewer.signal(SIGINT);
    QCOMPARE(viewer.finish().status, 0);
    QCOMPARE(shown(dir)["state"].toString(), "running");

    const auto stopped = run({"stop", dir});
    QVERIFY2(stopped.status == 0, qPrintable(stopped.err));
    const auto json = shown(dir);
    QCOMPARE(json["state"].toString(), "stopped");
    QCOMPARE(json["last_checkpoint"].toString(), QStringLiteral("step-%1").arg(json["updates"].toInt()));

    QCOMPARE(run({"resume", dir, "--detach"}, "micro_ms=2").status, 0);
    QCOMPARE(run({"stop", dir, "--kill"}).status, 0);
    QCOMPARE(shown(dir)["state"].toString(), "stopped");
  }

  void a_run_is_paused_given_another_n_and_continued_from_elsewhere() {
    const QString dir = detached("micro_ms=2");
    QCOMPARE(run({"steps", dir, "0"}).status, 2);
    const auto refused = run({"continue", dir});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("the run is not paused"), qPrintable(refused.err));
    const auto changed = run({"steps", dir, "3"});
    QVERIFY2(changed.status == 0 && changed.err.contains("N becomes 3"), qPrintable(changed.err));
    QTRY_COMPARE_WITH_TIMEOUT(events_with(dir, "\"steps_changed\""), 1, 10000);
    QCOMPARE(run({"pause", dir}).status, 0);
    QTRY_COMPARE_WITH_TIMEOUT(events_with(dir, "\"state\":\"paused\""), 1, 10000);
    QCOMPARE(run({"continue", dir}).status, 0);
    QCOMPARE(run({"stop", dir}).status, 0);
    QCOMPARE(shown(dir)["steps_set"].toArray().at(0).toObject()["steps"].toInt(), 3);
    const QString other = fresh();
    QCOMPARE(run({"run", spec_, "--out", other, "--set", "run.updates=5"}).status, 0);
    QVERIFY(run({"compare", other, dir}).out.contains("N set while it ran"));
    QCOMPARE(run({"steps", dir, "3"}).status, 2);  // no process trains it
  }

  /// The fake ranks' sum has the norm of its position in the window.
  void a_run_that_starts_paused_is_stepped_and_says_what_it_holds() {
    const QString dir = detached("micro_ms=2", {"--paused"});
    QTRY_COMPARE_WITH_TIMEOUT(events_with(dir, "\"state\":\"paused\""), 1, 10000);
    QCOMPARE(events_with(dir, "\"kind\":\"micro_steps\""), 0);
    const auto phase = run({"step", dir, "--phase"});
    QVERIFY2(phase.status == 0 && phase.out.contains("Paused after forward of micro 1 of "), qPrintable(phase.out));
    QVERIFY2(phase.out.contains("rank 0: loss ") && phase.out.contains(", 0 of "), qPrintable(phase.out));
    const auto micro_step = run({"step", dir});
    QVERIFY2(micro_step.out.contains("Paused after backward of micro 1 of "), qPrintable(micro_step.out));
    QVERIFY2(micro_step.out.contains(" micro-steps in the gradients, norm 1,"), qPrintable(micro_step.out));
    const auto update = run({"step", dir, "--update"});
    QVERIFY2(update.out.contains(", update 1"), qPrintable(update.out));
    QCOMPARE(run({"step", dir, "--update", "--phase"}).status, 2);
    QCOMPARE(run({"continue", dir}).status, 0);
    const auto refused = run({"step", dir});
    QVERIFY2(refused.status == 2 && refused.err.contains("only a paused run can be stepped"), qPrintable(refused.err));
    QCOMPARE(run({"stop", dir}).status, 0);
  }

  void a_detached_run_that_cannot_start_says_why() {
    const auto refused = run({"run", spec_, "--out", "/proc/nowhere", "--detach"});
    QCOMPARE(refused.status, 5);
    QVERIFY2(refused.err.contains("/proc/nowhere"), qPrintable(refused.err));
    const auto failed = run({"run", spec_, "--out", fresh(), "--detach"}, "exit=1@1:3");
    QVERIFY2(failed.status == 0 || failed.status == 3, qPrintable(failed.err));
    const auto never =
        run({"run", spec_, "--out", fresh(), "--detach", "--set", "launch.join_timeout_s=1"}, "absent=1");
    QCOMPARE(never.status, 4);
    QVERIFY2(never.err.contains("joined"), qPrintable(never.err));
  }

  void ranks_of_a_killed_supervisor_commit_and_end_and_the_run_resumes() {
    const QString dir = fresh();
    Program program = begin({"run", spec_, "--out", dir, "--set", "run.updates=400"}, "micro_ms=5");
    QVERIFY2(program.says("update 1/"), program.errors());
    program.signal(SIGKILL);
    program.finish();
    QTRY_COMPARE_WITH_TIMEOUT(shown(dir)["state"].toString(), "interrupted", 10000);
    const auto json = shown(dir);
    const auto stopped = run({"stop", dir});
    QVERIFY2(stopped.status == 2 && stopped.err.contains("resume"), qPrintable(stopped.err));
    QCOMPARE(QDir(path("runtime/accrue")).entryList({"*.sock"}, QDir::System), QStringList());
    QVERIFY(json["last_checkpoint"].toString().startsWith("step-"));
    const auto resumed = run({"resume", dir}, "micro_ms=0");
    QVERIFY2(resumed.status == 0, qPrintable(resumed.err));
    QVERIFY2(resumed.err.contains("continuing from update"), qPrintable(resumed.err));
    QCOMPARE(shown(dir)["updates"].toInt(), 400);
  }

  void doctor_counts_problems() {
    const auto good = run({"doctor", "--json"});
    const auto json = object(good.out);
    QCOMPARE(json["problems"].toInt(), good.status);
    QVERIFY(json["checks"].toArray().size() >= 8);
    const auto bad = run({"doctor"}, {}, {"ACCRUE_RANK_PROGRAM=/nowhere/accrue-rank"});
    QVERIFY(bad.status >= 1);
    QVERIFY2(bad.out.contains("PROBLEM") && bad.out.contains("/nowhere/accrue-rank"), qPrintable(bad.out));
  }

  void a_low_limit_is_the_same_figure_for_doctor_plan_and_run_data() {
    const Rows<QString, QString> row;
    row("open files", "ulimit -n 16", "(\\d+) ranks? may need (\\d+)");
    row("size of files", "ulimit -f 64", "(?:(\\d+) ranks? may need|takes a file of) (\\d+)(?:\\.0)? MiB");
  }
  void a_low_limit_is_the_same_figure_for_doctor_plan_and_run() {
    const auto [limit, needs] = current_row<QString, QString>();
    const auto under_limit = [&, limit = limit](const QStringList& arguments) {
      const QStringList shell{"-c", limit + " && exec \"$@\"", "sh", programPath("accrue-run")};
      return Program("sh", shell + arguments, environment("")).finish();
    };
    const auto doctor = under_limit({"doctor"});
    const auto told = QRegularExpression(needs).match(doctor.out);
    QVERIFY2(told.hasMatch() && doctor.status >= 1, qPrintable(doctor.out));
    for (const char* verb : {"plan", "run"}) {
      QStringList arguments{verb, spec_, "--set", "parallel.data=" + told.captured(1)};
      if (arguments.front() == "run") arguments += {"--out", fresh()};
      const auto refused = under_limit(arguments);
      const auto again = QRegularExpression(needs).match(refused.err);
      QVERIFY2(refused.status == 2 && again.hasMatch(), qPrintable(refused.err));
      QCOMPARE(again.captured(2), told.captured(2));
    }
  }

  void a_plan_refused_for_its_memory_shows_where_it_goes() {
    const auto refused = run({"plan", spec_, "--set", "accumulation.micro_batch=1000000", "--set",
                              "model.hidden=[65536]", "--set", "data.samples=8000000"});
    QCOMPARE(refused.status, 2);
    QVERIFY2(refused.err.contains("--set accumulation.micro_batch=1000000: error"), qPrintable(refused.err));
    QVERIFY2(refused.out.contains("activations"), qPrintable(refused.out));
  }
};

ACCRUE_TEST_MAIN(TestCli)

}  // namespace test_cli
#include "test_cli.moc"
