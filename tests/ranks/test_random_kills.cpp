// SPDX-License-Identifier: Apache-2.0
// Ranks of every layout that are killed or stopped at random, by real processes under the supervisor: each time the run
// starts again from a checkpoint or ends within a deadline, the lost rank is named with its place and what it did, and
// nothing stays behind. `test_random_kills --kills 200 --seed 7` tries as many as that.
#include <signal.h>

#include <QElapsedTimer>
#include <QRegularExpression>
#include <QTest>
#include <cstdlib>
#include <cstring>
#include <random>

#include "accrue/run/facts/host_facts.h"
#include "accrue/run/fields/spec_io.h"
#include "accrue/run/preflight/preflight.h"
#include "run/host_fixture.h"
#include "support/places.h"
#include "support/test_program.h"

using namespace accrue;
using namespace accrue_test;
using namespace std::chrono_literals;

namespace {

int kills = 10;
unsigned seed = 1;

struct Layout {
  const char* name;
  std::vector<const char*> settings;
};

const std::vector<Layout> layouts{
    {"two tensor ranks", {"parallel.tensor=2"}},
    {"two stages", {"parallel.pipeline=2"}},
    {"two stages of two chunks", {"parallel.pipeline=2", "parallel.virtual_pipeline=2"}},
    {"two replicas of two stages", {"parallel.data=2", "parallel.pipeline=2"}},
    {"two sharded replicas of two tensor ranks by rows",
     {"parallel.data=2", "parallel.tensor=2", "parallel.sequence=true", "parallel.zero=1",
      "parallel.overlap_param_gather=true"}},
    {"two stages of two tensor ranks over Gloo", {"parallel.tensor=2", "parallel.pipeline=2", "parallel.backend=gloo"}},
    // Those that CTest's few kills do not come to.
    {"four stages", {"parallel.pipeline=4"}},
    {"four tensor ranks by rows", {"parallel.tensor=4", "parallel.sequence=true"}},
    {"two by two by two", {"parallel.data=2", "parallel.tensor=2", "parallel.pipeline=2"}},
};

/// A model whose micro-steps take a while, saved after each update, with a second chance.
RunPlan plan_of(const Layout& layout) {
  RunSpec spec = parse_spec(
                     "accrue = 1\n[model]\nkind = \"gpt\"\nlayers = 4\nwidth = 64\nheads = 4\ncontext = 64\n"
                     "[data]\nkind = \"synthetic\"\nsamples = 400\n[accumulation]\nsteps = 4\nmicro_batch = 4\n"
                     "[run]\nupdates = 100000\n[checkpoint]\nevery_updates = 1\n"
                     "[launch]\nmax_restarts = 1\ncollective_timeout_s = 4.0\nstall_timeout_s = 2.0\n"
                     "threads_per_rank = 1\n",
                     "kills.accrue")
                     .spec;
  std::vector<Finding> findings;
  for (const char* setting : layout.settings) set_field(spec, setting, findings);
  const Preflight checked = preflight_files(spec, local_facts(), ".");
  if (!checked.plan) qFatal("%s", checked.findings.front().text().c_str());
  return *checked.plan;
}

/// ", last seen in backward of micro-step 7, chunk 0", or a phase between micro-steps: of a stopped rank
/// "... for 4 s in receiving the input of micro-step 7 from stage 0, update 2; ...".
bool names_what_it_did(const std::string& message) {
  static const QRegularExpression operation(
      R"re((last seen in|for \d+ s in) ((forward|backward|(sending|receiving) the (input|output|gradient)) of micro-step \d+)re"
      R"re(|(phase ")?(data|forward|backward|reduce|step|checkpoint)("|, update \d+)))re");
  return operation.match(QString::fromStdString(message)).hasMatch();
}

EngineHostOptions real_ranks() {
  EngineHostOptions options;
  options.rank_program = accrue::test::programPath("accrue-rank").toStdString();
  options.stop_grace = 1s;
  return options;
}

}  // namespace

class TestRandomKills : public QObject {
  Q_OBJECT
  HostHome home_;
  std::mt19937 random_{seed};
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

 private Q_SLOTS:
  void a_lost_rank_ends_or_restarts_all_and_is_named_data() {
    QTest::addColumn<int>("layout");
    QTest::addColumn<bool>("stops");
    // Each run loses two ranks: after the first it starts again, after the second it ends.
    for (int run = 0; run < (kills + 1) / 2; ++run) {
      const int layout = run % static_cast<int>(layouts.size());
      QTest::addRow("%d: %s", run, layouts[static_cast<std::size_t>(layout)].name) << layout << (run % 5 == 3);
    }
  }
  void a_lost_rank_ends_or_restarts_all_and_is_named() {
    QFETCH(int, layout);
    QFETCH(bool, stops);
    const RunPlan plan = plan_of(layouts[static_cast<std::size_t>(layout)]);
    const std::int64_t world = plan.grid.world();
    WatchedHost host(real_ranks());
    QVERIFY(host.start({plan, home_.fresh()}).has_value());
    for (const bool last : {false, true}) {
      VERIFY_STORY(host.wait_for_state("running", 60s));  // all ranks have said who they are
      VERIFY_STORY(host.wait_for<Update>(60s));
      const auto rank = static_cast<std::int64_t>(below(static_cast<int>(world)));
      const GridCoordinate at = plan.grid.coordinate(rank);
      const pid_t pid = newest_pid(host, rank);
      eventually([] { return false; }, std::chrono::milliseconds(below(250)));  // somewhere in what it does
      host.forget();
      QElapsedTimer since;
      since.start();
      ::kill(pid, stops ? SIGSTOP : SIGKILL);
      // A stopped rank is found by its peers' time-outs, a killed one at once.
      const auto failed = host.wait(
          [](const RunEvent& event) { return std::holds_alternative<RankFailed>(event.body); }, stops ? 15s : 2s);
      VERIFY_STORY(failed);
      QCOMPARE(failed->rank, rank);
      const std::string& message = std::get<RankFailed>(failed->body).message;
      const std::string name = "Rank " + std::to_string(rank) + " (data " + std::to_string(at.data) + ", stage " +
                               std::to_string(at.pipeline) + ", tensor " + std::to_string(at.tensor) + ")";
      QVERIFY2(message.starts_with(name), message.c_str());
      QVERIFY2(names_what_it_did(message), message.c_str());
      if (stops) since.restart();  // from when it was found
      if (last) {
        VERIFY_STORY(host.ends("failed", 4, 2s));
      } else {
        VERIFY_STORY(host.wait_for_state("restarting", 2s));
        host.forget();
      }
      QVERIFY2(since.elapsed() <= 2000, qPrintable(QString::number(since.elapsed())));
    }
  }
  void cleanup() { QCOMPARE(home_.leftovers(), std::string()); }

 private:
  /// Of the attempt that runs.
  static pid_t newest_pid(const WatchedHost& host, std::int64_t rank) {
    pid_t pid = 0;
    for (const RunEvent& event : host.all())
      if (const auto* ready = std::get_if<RankReady>(&event.body); ready != nullptr && event.rank == rank)
        pid = static_cast<pid_t>(ready->pid);
    return pid;
  }
};

/// Takes its own arguments from the front of Qt's.
static const accrue::test::TestFile test_file(__FILE__, [](int argc, char** argv) {
  QCoreApplication application(argc, argv);
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (i + 1 < argc && std::strcmp(argv[i], "--kills") == 0)
      kills = std::atoi(argv[++i]);
    else if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0)
      seed = static_cast<unsigned>(std::atoi(argv[++i]));
    else
      rest.push_back(argv[i]);
  }
  qputenv("QTEST_FUNCTION_TIMEOUT", "3600000");  // of all rows together; each wait has its own deadline
  TestRandomKills tests;
  return QTest::qExec(&tests, static_cast<int>(rest.size()), rest.data());
});
#include "test_random_kills.moc"
