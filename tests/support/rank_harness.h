// SPDX-License-Identifier: Apache-2.0
// N ranks as processes, each a fork of the test program (rank_forker.h) that runs a rank body. The harness plays the
// supervisor: it makes the store's memory, passes it to every rank and gives them the environment of RANK,
// WORLD_SIZE, ... Everything has a deadline; processes left at the end are killed, and a rank whose test died ends by
// itself (its lifeline pipe closes, with an alarm as a second safeguard).
//
//   static int sum_ranks(accrue::test::RankContext& rank) { ...; rank.report("42"); return 0; }
//   ACCRUE_RANK_TEST_MAIN(TestSum, {{"sum_ranks", sum_ranks}})
//   ... in a test function:
//   accrue::test::RankGroup ranks("sum_ranks", 2);
//   auto outcomes = ranks.finish(30s);
//   QVERIFY2(outcomes[0].ok(), outcomes[0].text().c_str());
//
// Needs no LibTorch; joined_rank.h adds the engine's side.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "support/test_program.h"

namespace accrue::test {

using namespace std::chrono_literals;

/// Argument of a rank body.
struct RankContext {
  int rank = 0;
  int world = 1;
  int store_fd = -1;  ///< the memory in which the ranks meet; the body passes it on
  std::vector<std::string> arguments;

  /// One line to the test. Lines arrive in order and are visible at once.
  void report(const std::string& line) const;
};

using RankBody = int (*)(RankContext& rank);

struct NamedRankBody {
  const char* name;
  RankBody body;
};

/// Exit and reports of a rank.
struct RankOutcome {
  bool timed_out = false;  ///< had to be killed at the deadline
  int exit_status = -1;    ///< -1 if a signal ended it
  int signal = 0;
  std::vector<std::string> lines;  ///< what report() sent
  std::string errors;              ///< its standard error, the last 64 KiB
  std::chrono::milliseconds lived{0};

  bool ok() const { return !timed_out && exit_status == 0 && signal == 0; }
  std::string text() const;  ///< for QVERIFY2
};

/// Empty if all ranks ended well, else the first failure's text: QVERIFY2(failure.empty(), failure.c_str()).
std::string first_failure(const std::vector<RankOutcome>& outcomes);

struct RankGroupOptions {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  ///< for every rank, over the harness' own
  std::vector<int> leave_out;   ///< ranks that are counted in WORLD_SIZE but never started
  bool hand_over_store = true;  ///< false: rank 0 must listen on MASTER_PORT
};

class RankGroup {
 public:
  RankGroup(const std::string& body, int world, RankGroupOptions options = {});
  ~RankGroup();  ///< kills and reaps the remaining processes
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  pid_t pid(int rank) const;
  int port() const { return port_; }
  void send_signal(int rank, int signal);

  /// Waits until rank has reported a line that starts with `prefix`; the line, or empty at the deadline or at its end.
  std::string wait_for(int rank, const std::string& prefix, std::chrono::milliseconds deadline = 20s);
  /// Waits until the rank has ended; false at the deadline.
  bool wait_for_end(int rank, std::chrono::milliseconds deadline = 20s);

  /// Waits for all, kills those left at the deadline, and returns outcomes by rank. A rank left out has a default one.
  std::vector<RankOutcome> finish(std::chrono::milliseconds deadline = 60s);

 private:
  struct Process {
    pid_t pid = -1;
    int reports = -1;
    int errors = -1;
    bool ended = false;
    std::string partial;
    RankOutcome outcome;
  };

  void start(int rank, const std::string& body, const RankGroupOptions& options, int store);
  void pump(std::chrono::milliseconds wait);
  void drain(Process& process);
  void reap(Process& process, int wait_flags);
  Process& at(int rank);

  std::vector<Process> processes_;
  int lifeline_ = -1;
  int port_ = 0;
  std::chrono::steady_clock::time_point began_;
};

/// Starts the process that ranks are forked from and names the bodies they can run. Call it first in main().
void start_rank_forker(const std::vector<NamedRankBody>& bodies);

/// Runs a test class with rank bodies.
int rank_test_main(int argc, char** argv, QObject& tests, const std::vector<NamedRankBody>& bodies);

}  // namespace accrue::test

/// In a test function: fails it with the text of the first rank that did not end well.
#define ACCRUE_ALL_RANKS_OK(outcomes)                                         \
  do {                                                                        \
    const std::string accrue_failure = accrue::test::first_failure(outcomes); \
    QVERIFY2(accrue_failure.empty(), accrue_failure.c_str());                 \
  } while (false)

/// A function as a rank body of the same name.
#define RANK_BODY(function)     \
  accrue::test::NamedRankBody { \
#function, function         \
  }

#define ACCRUE_RANK_TEST_MAIN(TestClass, ...)                                                                     \
  static const accrue::test::TestFile test_file(__FILE__, [](int argc, char** argv) {                             \
    TestClass tests;                                                                                              \
    return accrue::test::rank_test_main(argc, argv, tests, std::vector<accrue::test::NamedRankBody> __VA_ARGS__); \
  });
