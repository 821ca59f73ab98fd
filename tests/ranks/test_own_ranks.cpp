// SPDX-License-Identifier: Apache-2.0
// Ranks that no supervisor started: accrue-rank SPEC --out DIR, alone or as torchrun, srun and mpirun start it. Rank 0
// keeps the record.
#include <signal.h>

#include <QDir>
#include <QDirIterator>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "accrue/run/events/event_reader.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/record/run_store.h"
#include "accrue/run/window/checkpoint_mark.h"
#include "run/host_fixture.h"
#include "support/free_port.h"
#include "support/programs.h"
#include "support/test_program.h"

namespace test_own_ranks {

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

constexpr const char* own_loop = "../examples/own_loop";

CheckpointMark newest_checkpoint(const QString& dir) {
  CheckpointMark newest;
  for (const QString& name : QDir(dir + "/checkpoints").entryList(QDir::Dirs))
    newest = std::max(newest, checkpoint_mark(name.toStdString()));
  return newest;
}

/// The variables by which a launcher says which of two ranks this is.
struct Launcher {
  const char* rank;
  const char* world;
  QStringList others;
};

/// SLURM_JOB_NODELIST and SLURM_JOB_ID would give the meeting point; a test needs a free port.
std::vector<std::pair<const char*, Launcher>> launchers() {
  return {{"torchrun", {"RANK", "WORLD_SIZE", {"TORCHELASTIC_RUN_ID=none"}}},
          {"srun", {"SLURM_PROCID", "SLURM_NTASKS", {"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=1"}}},
          {"mpirun", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {}}}};
}

/// Two ranks of a spec as a launcher starts them.
class TwoRanks {
 public:
  TwoRanks(Launcher launcher, QString spec, QString dir, const std::vector<int>& first = {0, 1})
      : TwoRanks(std::move(launcher), "accrue-rank", {std::move(spec), "--out", std::move(dir)}, first) {}
  TwoRanks(Launcher launcher, const char* program, QStringList arguments, const std::vector<int>& first = {0, 1})
      : launcher_(std::move(launcher)), program_(program), arguments_(std::move(arguments)), port_(test::free_port()) {
    for (const int rank : first) start(rank);
  }
  void start(int rank) {
    const QStringList environment =
        launcher_.others + QStringList{QStringLiteral("%1=%2").arg(launcher_.rank).arg(rank),
                                       QStringLiteral("%1=2").arg(launcher_.world), "MASTER_ADDR=127.0.0.1",
                                       QStringLiteral("MASTER_PORT=%1").arg(port_)};
    programs_.at(static_cast<std::size_t>(rank)) =
        std::make_unique<test::Program>(test::programPath(program_), arguments_, environment);
  }
  test::Program& operator[](int rank) { return *programs_.at(static_cast<std::size_t>(rank)); }
  int port() const { return port_; }

 private:
  Launcher launcher_;
  const char* program_;
  QStringList arguments_;
  int port_;
  std::array<std::unique_ptr<test::Program>, 2> programs_;
};

/// Two hosts, as far as the network tells: namespaces with an address each, and a cable between them.
class TwoHosts {
 public:
  TwoHosts() {
    made_ = true;
    for (const int host : {0, 1}) ip({"netns", "add", name(host)});
    ip({"link", "add", "cable0", "netns", name(0), "type", "veth", "peer", "name", "cable1", "netns", name(1)});
    for (const int host : {0, 1}) {
      const QString cable = QStringLiteral("cable%1").arg(host);
      ip({"-n", name(host), "address", "add", QStringLiteral("10.99.0.%1/24").arg(host + 1), "dev", cable});
      for (const QString& interface : {QStringLiteral("lo"), cable})
        ip({"-n", name(host), "link", "set", interface, "up"});
    }
  }
  ~TwoHosts() {
    for (const int host : {0, 1}) QProcess::execute("ip", {"netns", "delete", name(host)});
  }
  bool made() const { return made_; }
  /// A rank on each of them, which meet at the first.
  std::unique_ptr<test::Program> start(int rank, const QString& spec, const QString& dir,
                                       const QStringList& more) const {
    const QString command = QStringLiteral("hostname host%1; exec \"$@\"").arg(rank);
    return std::make_unique<test::Program>(
        "ip",
        QStringList{"netns", "exec", name(rank), "unshare", "--uts", "sh", "-c", command, "sh",
                    test::programPath("accrue-rank"), spec, "--out", dir},
        QStringList{QStringLiteral("RANK=%1").arg(rank), "WORLD_SIZE=2", "MASTER_ADDR=10.99.0.1", "MASTER_PORT=29500"} +
            more);
  }

 private:
  static QString name(int host) { return QStringLiteral("accrue-%1-%2").arg(::getpid()).arg(host); }
  void ip(const QStringList& arguments) {
    QProcess command;
    command.start("ip", arguments);
    made_ =
        made_ && command.waitForFinished() && command.exitStatus() == QProcess::NormalExit && command.exitCode() == 0;
  }
  bool made_ = false;
};

/// Contents of a folder's events that do not depend on time.
struct Record {
  std::string problems;
  std::set<std::pair<std::int64_t, std::string>> kinds;  ///< with the rank that told
  std::vector<double> losses;
  std::map<std::int64_t, std::vector<double>> micro_steps;  ///< losses, by rank
  std::vector<std::string> states;
  std::map<std::string, std::vector<double>> scalars;
  std::vector<std::int64_t> starts;  ///< the updates that the run went on from
  std::int64_t last_update = 0;
};

Record record_of(const QString& dir) {
  Record record;
  const auto read = read_events(dir.toStdString() + "/events.jsonl");
  if (!read) return record;
  record.problems = to_text(read->problems);
  for (const RunEvent& event : read->events) {
    record.kinds.insert({event.rank, std::string(kind_of(event.body))});
    if (const auto* update = std::get_if<Update>(&event.body)) {
      record.losses.push_back(update->loss);
      record.last_update = update->update;
      for (const auto& [name, value] : update->scalars) record.scalars[name].push_back(value);
    }
    if (const auto* micro = std::get_if<MicroSteps>(&event.body)) {
      auto& losses = record.micro_steps[event.rank];
      losses.insert(losses.end(), micro->loss.begin(), micro->loss.end());
    }
    if (const auto* state = std::get_if<StateChanged>(&event.body)) record.states.push_back(state->state);
    if (const auto* started = std::get_if<RunStarted>(&event.body)) record.starts.push_back(started->resumed_update);
  }
  return record;
}

}  // namespace

class TestOwnRanks : public QObject {
  Q_OBJECT
  QTemporaryDir temporary_;
  HostHome home_;
  int count_ = 0;

  QString path(const QString& name) const { return temporary_.filePath(name); }
  QString fresh() { return path(QStringLiteral("run%1").arg(++count_)); }
  /// A spec of one rank.
  QString spec(std::int64_t updates, std::int64_t steps = 4) {
    return spec({.ranks = 1, .steps = steps, .updates = updates, .checkpoint_every = 1});
  }
  QString spec(const PlanOptions& options) {
    const QString file = path(QStringLiteral("spec%1.accrue").arg(++count_));
    const auto plan = small_plan(options);
    std::ofstream(file.toStdString()) << write_spec(plan.spec);
    return file;
  }
  static test::Program begin(const QString& spec, const QString& dir) {
    return test::Program(test::programPath("accrue-rank"), {spec, "--out", dir});
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
      const auto before = updates(dir + "/events.jsonl");
      test::Program rank = begin(endless, dir);
      QVERIFY(eventually([&] { return updates(dir + "/events.jsonl") > before; }, std::chrono::seconds(60)));
      rank.signal(number);
      QVERIFY2(rank.finish(60000).status == 130, rank.errors());
      const auto newest = newest_checkpoint(dir);
      QVERIFY(newest.valid() && newest.update > saved);
      saved = newest.update;
    }
  }

  void two_ranks_leave_the_record_that_a_supervisor_leaves_data() {
    QTest::addColumn<int>("place");
    for (int place = 0; const auto& [name, launcher] : launchers()) QTest::newRow(name) << place++;
  }
  void two_ranks_leave_the_record_that_a_supervisor_leaves() {
    QFETCH(int, place);
    const Launcher launcher = launchers().at(static_cast<std::size_t>(place)).second;
    const QString dir = fresh(), file = spec({.updates = 6, .checkpoint_every = 4, .join_timeout_s = 60.0});
    TwoRanks ranks(launcher, file, dir);
    for (const int rank : {0, 1}) QVERIFY2(ranks[rank].finish(60000).status == 0, ranks[rank].errors());
    QVERIFY(ranks[0].finish().out.isEmpty());

    EngineHostOptions options;
    options.rank_program = test::programPath("accrue-rank").toStdString();
    WatchedHost host(options);
    const fs::path other = fresh().toStdString();
    QVERIFY(host.start({small_plan({.updates = 6, .checkpoint_every = 4, .join_timeout_s = 60.0}), other}));
    QVERIFY2(host.ends("finished", 0, std::chrono::seconds(60)), host.story().c_str());

    const Record own = record_of(dir), supervised = record_of(QString::fromStdString(other.string()));
    QCOMPARE(own.problems, std::string());
    QCOMPARE(own.kinds, supervised.kinds);
    QCOMPARE(own.losses, supervised.losses);
    QCOMPARE(own.micro_steps, supervised.micro_steps);
    QCOMPARE(own.states.back(), supervised.states.back());
    const auto run = read_run(dir.toStdString()), usual = read_run(other);
    QVERIFY(run->problems.empty());
    QCOMPARE(run->state, std::string("finished"));
    QCOMPARE(run->updates, std::int64_t{6});
    QCOMPARE(run->weights_sha256, usual->weights_sha256);
    QCOMPARE(run->spec_sha256, usual->spec_sha256);
    QCOMPARE(run->plan_check.size(), usual->plan_check.size());
  }

  void a_live_run_is_followed_held_and_stopped_and_goes_on() {
    const QString dir = fresh(), file = spec({.updates = 10'000'000, .join_timeout_s = 60.0});
    {
      TwoRanks ranks(launchers().front().second, file, dir);
      QVERIFY(eventually([&] { return !record_of(dir).losses.empty(); }, std::chrono::seconds(60)));
      WatchedHost host((EngineHostOptions()));
      QVERIFY(host.attach(dir.toStdString()));
      QVERIFY(host.wait_for<Update>());
      QVERIFY(host.controls());
      host.pause();
      QVERIFY2(host.wait_for_state("paused"), host.story().c_str());
      host.proceed();
      host.forget();
      QVERIFY2(host.wait_for<Update>(), host.story().c_str());
      host.checkpoint_and_stop();
      QVERIFY2(host.ends("stopped", 130), host.story().c_str());
      for (const int rank : {0, 1}) QCOMPARE(ranks[rank].finish().status, 130);
    }
    const auto saved = newest_checkpoint(dir);
    QVERIFY(saved.valid());
    // As a launcher's restart would, and then the supervisor.
    TwoRanks again(launchers().front().second, file, dir);
    const auto past = [&] {
      return eventually([&] { return record_of(dir).last_update > saved.update; }, std::chrono::seconds(60));
    };
    QVERIFY2(past(), again[0].errors());
    again[1].signal(SIGTERM);
    for (const int rank : {0, 1}) QCOMPARE(again[rank].finish(60000).status, 130);
    const Record record = record_of(dir);
    QCOMPARE(record.problems, std::string());
    QCOMPARE(record.starts, (std::vector<std::int64_t>{0, saved.update}));
    EngineHostOptions options;
    options.rank_program = test::programPath("accrue-rank").toStdString();
    WatchedHost host(options);
    QVERIFY(host.resume(dir.toStdString()));
    QVERIFY2(host.wait_for_update(record.last_update + 1), host.story().c_str());
  }

  void a_loop_of_ones_own_leaves_a_record() {
    const QString dir = fresh();
    test::Program launch(test::programPath("accrue-run"),
                         {"launch", "-n", "2", "--out", dir, "--", test::programPath(own_loop), "--updates", "12"});
    QVERIFY2(launch.finish(60000).status == 0, launch.errors());
    const Record record = record_of(dir);
    QCOMPARE(record.problems, std::string());
    QCOMPARE(record.losses.size(), std::size_t{12});
    QVERIFY(record.losses.back() < record.losses.front());
    for (const std::int64_t rank : {0, 1}) {
      QCOMPARE(record.micro_steps.at(rank).size(), std::size_t{48});
      for (const char* kind : {"rank_ready", "micro_steps", "operations", "sync"})
        QVERIFY2(record.kinds.contains({rank, kind}), kind);
    }
    // Of the window's micro-steps on both ranks, which are of one size.
    double mean = 0.0;
    for (const std::int64_t rank : {0, 1})
      for (std::size_t i = 0; i < 4; ++i) mean += record.micro_steps.at(rank)[i] / 8.0;
    QVERIFY(std::abs(record.losses.front() - mean) <= 1e-12 * mean);
    QCOMPARE(record.scalars.at("slope").size(), std::size_t{12});
    const auto run = read_run(dir.toStdString());
    QVERIFY(run->problems.empty());
    QCOMPARE(run->state, std::string("finished"));
    QCOMPARE(run->name, std::string("A line"));
    QCOMPARE(run->updates, std::int64_t{12});
    QCOMPARE(run->samples, std::int64_t{12 * 4 * 2 * 2});
  }

  void a_loop_of_ones_own_is_held_and_stopped_under_any_launcher_data() {
    two_ranks_leave_the_record_that_a_supervisor_leaves_data();
  }
  void a_loop_of_ones_own_is_held_and_stopped_under_any_launcher() {
    QFETCH(int, place);
    const Launcher launcher = launchers().at(static_cast<std::size_t>(place)).second;
    const QString dir = fresh();
    TwoRanks ranks(launcher, own_loop, {"--out", dir, "--updates", "100000000"});
    QVERIFY2(eventually([&] { return !record_of(dir).losses.empty(); }, std::chrono::seconds(60)), ranks[0].errors());
    WatchedHost host((EngineHostOptions()));
    QVERIFY(host.attach(dir.toStdString()));
    QVERIFY(host.wait_for<Update>());
    host.pause();
    QVERIFY2(host.wait_for_state("paused"), host.story().c_str());
    host.step(StepUnit::micro_step);
    host.forget();
    QVERIFY2(host.wait_for_state("paused"), host.story().c_str());
    host.proceed();
    host.forget();
    QVERIFY2(host.wait_for<Update>(), host.story().c_str());
    host.checkpoint_and_stop();
    QVERIFY2(host.ends("stopped", 130), host.story().c_str());
    for (const int rank : {0, 1}) QVERIFY2(ranks[rank].finish().status == 0, ranks[rank].errors());
    QCOMPARE(record_of(dir).problems, std::string());
    QVERIFY(!fs::exists(dir.toStdString() + "/plan.json"));
  }

  void a_killed_rank_ends_the_run_and_is_named_data() {
    QTest::addColumn<int>("killed");
    QTest::newRow("rank 1") << 1;
    QTest::newRow("rank 0, which keeps the record") << 0;
  }
  void a_killed_rank_ends_the_run_and_is_named() {
    QFETCH(int, killed);
    const QString dir = fresh();
    TwoRanks ranks(launchers().front().second, spec({.updates = 10'000'000, .join_timeout_s = 60.0}), dir);
    QVERIFY(eventually([&] { return !record_of(dir).losses.empty(); }, std::chrono::seconds(60)));
    ranks[killed].signal(SIGKILL);
    QCOMPARE(ranks[1 - killed].finish(60000).status, 4);
    QVERIFY(!is_locked(dir.toStdString()));
    const auto run = read_run(dir.toStdString());
    QCOMPARE(run->state, std::string(killed == 0 ? "interrupted" : "failed"));
    if (killed == 1) QVERIFY2(run->message.find("Rank 1 was lost") != std::string::npos, run->message.c_str());
  }

  void a_rank_that_waits_for_the_others_ends_at_a_signal() {
    const QString dir = fresh();
    TwoRanks ranks(launchers().front().second, spec(PlanOptions()), dir, {1});
    const auto catches = [&] {
      const QDir open(QStringLiteral("/proc/%1/fd").arg(ranks[1].pid()));
      return std::ranges::any_of(open.entryList(QDir::System | QDir::Files), [&](const QString& each) {
        return fs::read_symlink(open.filePath(each).toStdString()).string().find("signalfd") != std::string::npos;
      });
    };
    QVERIFY(eventually(catches, std::chrono::seconds(30)));
    ranks[1].signal(SIGTERM);
    QVERIFY2(ranks[1].finish().status == 130, ranks[1].errors());
    QVERIFY2(ranks[1].says("ended by a signal before the ranks had met", 0), ranks[1].errors());
  }

  void two_hosts_train_over_the_interface_that_leads_to_the_meeting_point_or_name_another_data() {
    QTest::addColumn<QStringList>("variables");
    QTest::addColumn<int>("status");
    QTest::addColumn<QByteArray>("says");
    QTest::newRow("by itself") << QStringList() << 0 << QByteArray();
    QTest::newRow("one that reaches nobody") << QStringList{"GLOO_SOCKET_IFNAME=lo"} << 4
                                             << QByteArray("within 8 s. This one listens on lo (GLOO_SOCKET_IFNAME): ");
  }
  void two_hosts_train_over_the_interface_that_leads_to_the_meeting_point_or_name_another() {
    QFETCH(QStringList, variables);
    QFETCH(int, status);
    QFETCH(QByteArray, says);
    const TwoHosts hosts;
    if (!hosts.made()) QSKIP("needs root and iproute2, to make two hosts");
    const QString dir = fresh(), file = spec({.updates = 3, .join_timeout_s = 8.0});
    const auto first = hosts.start(0, file, dir, variables), second = hosts.start(1, file, dir, variables);
    for (test::Program* rank : {first.get(), second.get()}) {
      QVERIFY2(rank->finish(35000).status == status,
               rank->errors());  // Gloo alone would wait for five times the time-out
      QVERIFY2(says.isEmpty() || rank->says(says.constData(), 0), rank->errors());
    }
    if (status != 0) return;
    const Record record = record_of(dir);
    QCOMPARE(record.problems, std::string());
    for (const std::int64_t rank : {0, 1}) QCOMPARE(record.micro_steps.at(rank).size(), std::size_t{12});
  }

  void a_rank_whose_meeting_point_is_stopped_ends_by_itself() {
    const QString dir = fresh();
    const Launcher launcher = launchers().front().second;
    TwoRanks ranks(launcher, spec({.join_timeout_s = 1.0}), dir, {0});
    QVERIFY(eventually([&] { return test::is_taken(ranks.port()); }, std::chrono::seconds(30)));
    ranks[0].signal(SIGSTOP);
    ranks.start(1);
    QVERIFY2(ranks[1].finish().status == 4, ranks[1].errors());
  }
};

ACCRUE_TEST_MAIN(TestOwnRanks)

}  // namespace test_own_ranks
#include "test_own_ranks.moc"
