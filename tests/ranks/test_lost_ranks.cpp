// SPDX-License-Identifier: Apache-2.0
// Errors of the survivors when a rank is killed, leaves, stops or never joins. Nothing of a run listens beyond
// 127.0.0.1 or is left behind.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QSet>
#include <QTest>
#include <cerrno>
#include <csignal>

#include "support/joined_rank.h"
#include "support/listeners.h"
#include "support/rank_checks.h"
#include "support/refusals.h"

namespace test_lost_ranks {

using namespace accrue;
using namespace accrue::test;
using namespace std::chrono_literals;

namespace {

std::string milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count());
}

/// Arguments: the backend, and the milliseconds after which an exchange is given up.
JoinedRank join_as_told(const RankContext& rank) {
  return join_ranks(rank, CommOptions{.backend = backend_named(rank.arguments.at(0)),
                                      .timeout = std::chrono::milliseconds(std::stoi(rank.arguments.at(1))),
                                      .join_timeout = 20s,
                                      .run_id = "test",
                                      .timeout_option = "the test's time-out"});
}

[[noreturn]] void stand_still() {
  for (;;) ::pause();
}

/// The others wait in an all-reduce in which the last rank never arrives: it reports and then stands still.
int waits_for_the_last(RankContext& rank) {
  const auto joined = join_as_told(rank);
  at::Tensor value = at::zeros({200000}, at::kFloat);
  joined.data->all_reduce(value);
  rank.report("joined");
  if (rank.rank == rank.world - 1) stand_still();
  rank.report("waiting");
  const auto begin = std::chrono::steady_clock::now();
  try {
    joined.data->all_reduce(value);
  } catch (const CommError& error) {
    rank.report("error after " + milliseconds_since(begin) + " ms: " + error.what());
    // Once broken, always broken: nothing blocks a second time.
    try {
      joined.data->barrier();
    } catch (const CommError&) {
      rank.report("broken");
      ::_exit(0);
    }
  }
  ::_exit(1);
}

/// A chain of messages: each rank waits for one from the next, and the last sends none.
int waits_for_a_message(RankContext& rank) {
  const auto joined = join_as_told(rank);
  joined.data->barrier();
  rank.report("waiting");
  if (rank.rank == rank.world - 1) stand_still();
  at::Tensor value = at::zeros({200000}, at::kFloat);
  try {
    joined.data->receive(value, rank.rank + 1);
  } catch (const CommError& error) {
    rank.report(std::string("error ") + error.what());
    ::_exit(0);
  }
  ::_exit(1);
}

/// Rank 0 waits for a message of rank 1, which first has more to do with rank 2 than a time-out lasts.
int waits_for_a_slow_stage(RankContext& rank) {
  const auto joined = join_as_told(rank);
  at::Tensor value = at::zeros({10}, at::kFloat);
  constexpr int messages = 8;
  joined.data->barrier();
  try {
    if (rank.rank == 0) joined.data->receive(value, 1);
    for (int i = 0; rank.rank == 2 && i < messages; ++i) joined.data->receive(value, 1);
    for (int i = 0; rank.rank == 1 && i < messages; ++i) {
      ::poll(nullptr, 0, 300);  // its work
      joined.data->send(value, 2);
    }
    if (rank.rank == 1) joined.data->send(value, 0);
  } catch (const CommError& error) {
    rank.report(error.what());
    ::_exit(1);
  }
  joined.data->barrier();
  return 0;
}

/// Rank 1 leaves; rank 0 then waits for it in a barrier, or sends it more than fits into its box.
int one_leaves(RankContext& rank) {
  auto joined = join_ranks(rank, BackendKind::shm);
  joined.data->barrier();
  if (rank.rank == 1) {
    joined.data.reset();
    rank.report("left");
    stand_still();
  }
  try {
    if (rank.arguments.at(0) == "barrier")
      joined.data->barrier();
    else
      joined.data->send(at::zeros({2000000}, at::kFloat), 1);
  } catch (const CommError& error) {
    rank.report(error.what());
  }
  return 0;
}

int signal_pipe[2];

/// SIGUSR1 reaches whichever thread; the pipe reaches the one that waits.
void expect_the_signal() {
  if (::pipe2(signal_pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  ::signal(SIGUSR1, [](int) { static_cast<void>(!::write(signal_pipe[1], "", 1)); });
}

void wait_for_the_signal() {
  char byte = 0;
  while (::read(signal_pipe[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

/// Rank 0 waits in an all-reduce that the last rank reaches at SIGUSR1; "untimed" as third argument: without a
/// deadline.
int waits_for_a_signal(RankContext& rank) {
  expect_the_signal();
  const auto joined = join_as_told(rank);
  joined.data->barrier();
  rank.report("waiting");
  if (rank.rank == rank.world - 1) wait_for_the_signal();
  at::Tensor value = at::ones({200000}, at::kFloat);
  try {
    if (rank.arguments.size() > 2) {
      const auto untimed = joined.data->untimed();
      joined.data->all_reduce(value);
    } else {
      joined.data->all_reduce(value);
    }
  } catch (const CommError& error) {
    rank.report(std::string("error: ") + error.what());
    ::_exit(1);
  }
  DEMAND(value.min().item<float>() == static_cast<float>(rank.world));
  rank.report("done");
  joined.data->barrier();
  return 0;
}

/// Rank 0 may go home after the last collective while others are still on their way out of it.
int ends_at_once(RankContext& rank) {
  const auto joined = join_ranks(rank, BackendKind::shm);
  for (int i = 0; i < 300; ++i) joined.data->barrier();
  if (rank.rank == 0) ::_exit(0);
  return 0;
}

/// Rank 0 hosts the store, and its program ends as soon as it has its communicator.
int ends_after_meeting(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  if (rank.rank == 0) ::_exit(0);
  return 0;
}

/// Rank 0 ends when it has joined; the others then look for a communicator.
int finds_no_store(RankContext& rank) {
  expect_the_signal();
  const RankIdentity identity = taken(rank_identity(environment, rank.store_fd));
  const auto rendezvous = taken(Rendezvous::join(identity, CommOptions{.join_timeout = 20s, .run_id = "test"}));
  rank.report("joined");
  wait_for_the_signal();
  if (rank.rank == 0) ::_exit(0);
  const auto begin = std::chrono::steady_clock::now();
  const auto made = rendezvous->communicator(RankGrid{.data = rank.world}, Axis::data);
  if (made) return 1;
  DEMAND(std::chrono::steady_clock::now() - begin < 10s);
  rank.report(made.error().text());
  return made.error().code == ErrorCode::rendezvous ? 0 : 2;
}

int cannot_join(RankContext& rank) {
  const auto begin = std::chrono::steady_clock::now();
  const auto joined = Rendezvous::join(taken(rank_identity(environment, rank.store_fd)),
                                       CommOptions{.join_timeout = 2s, .run_id = "test"});
  if (joined) return 1;
  rank.report(milliseconds_since(begin) + " " + joined.error().text());
  return joined.error().code == ErrorCode::rendezvous ? 0 : 2;
}

int cannot_join_by_secret(RankContext& rank) {
  RankIdentity identity = taken(rank_identity(environment, rank.store_fd));
  identity.secret = "secret of rank " + std::to_string(rank.rank);
  const auto joined = Rendezvous::join(identity, CommOptions{.join_timeout = 2s, .run_id = "test"});
  if (joined) return 1;
  rank.report(joined.error().text());
  return 0;
}

int stands_still(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.at(0)));
  const at::Tensor buffer = joined.data->shared_buffer(1 << 20, at::kFloat);
  joined.data->barrier();
  rank.report("standing");
  stand_still();
}

int joins_and_ends(RankContext& rank) {
  const auto joined = join_ranks(rank, backend_named(rank.arguments.empty() ? "" : rank.arguments[0]));
  joined.data->barrier();
  rank.report(joined.rendezvous->identity().source + " " + joined.data->backend());
  rank.report(joined.rendezvous->meeting_place());
  return 0;
}

/// Another program's listener on 127.0.0.1.
struct LoopbackListener {
  LoopbackListener() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, generic, length) == 0 && ::listen(fd, 1) == 0 && ::getsockname(fd, generic, &length) == 0) {
      port = ntohs(address.sin_port);
    }
  }
  ~LoopbackListener() { ::close(fd); }
  int fd;
  int port = 0;
};

/// Returns 'T' if the process is stopped, 'S' if it sleeps; see proc(5).
char state_of(pid_t pid) {
  QFile file(QStringLiteral("/proc/%1/stat").arg(pid));
  if (!file.open(QIODevice::ReadOnly)) return '?';
  const QByteArray stat = file.readAll();
  const auto name_end = stat.lastIndexOf(')');
  return name_end > 0 && name_end + 2 < stat.size() ? stat.at(name_end + 2) : '?';
}

/// The inodes of the shared segments that a process maps.
QSet<QByteArray> segments_of(pid_t pid) {
  QSet<QByteArray> inodes;
  QFile maps(QStringLiteral("/proc/%1/maps").arg(pid));
  if (!maps.open(QIODevice::ReadOnly)) return inodes;
  for (const QByteArray& line : maps.readAll().split('\n'))
    if (line.contains("/memfd:accrue ")) inodes.insert(line.simplified().split(' ').value(4));
  return inodes;
}

/// A rank as errors name it.
std::string name_of(const RankGroup& ranks, int rank) {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(ranks.pid(rank)) + ")";
}

}  // namespace

class TestLostRanks : public QObject {
  Q_OBJECT

  static void backends() {
    QTest::addColumn<QString>("backend");
    QTest::newRow("shm") << QStringLiteral("shm");
    QTest::newRow("gloo") << QStringLiteral("gloo");
  }

 private Q_SLOTS:
  void a_killed_rank_is_named_within_a_second_data() { backends(); }
  void a_killed_rank_is_named_within_a_second() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_the_last", 3, {.arguments = {backend.toStdString(), "60000"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "waiting", 60s).empty());
    QVERIFY(!ranks.wait_for(2, "joined").empty());
    QElapsedTimer since;
    since.start();
    ranks.send_signal(2, SIGKILL);
    for (const int rank : {0, 1}) {
      const std::string said = ranks.wait_for(rank, "error");
      if (said.empty()) QFAIL(ranks.finish(5s)[static_cast<std::size_t>(rank)].text().c_str());
      QVERIFY2(contains(said, name_of(ranks, 2) + " ended"), said.c_str());
      QVERIFY2(since.elapsed() <= 1000, qPrintable(QStringLiteral("noticed after %1 ms").arg(since.elapsed())));
    }
    const auto outcomes = ranks.finish(30s);
    for (const int rank : {0, 1}) {
      QVERIFY2(outcomes[static_cast<std::size_t>(rank)].ok(), outcomes[static_cast<std::size_t>(rank)].text().c_str());
      QCOMPARE(outcomes[static_cast<std::size_t>(rank)].lines.back(), std::string("broken"));
    }
  }

  void a_rank_that_stands_still_ends_in_a_time_out_data() { backends(); }
  void a_rank_that_stands_still_ends_in_a_time_out() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_the_last", 2, {.arguments = {backend.toStdString(), "1500"}});
    const std::string said = ranks.wait_for(0, "error", 60s);
    if (backend == QStringLiteral("shm")) {
      QVERIFY2(contains(said, name_of(ranks, 1) + " did not come within 1500 ms"), said.c_str());
      QVERIFY2(contains(said, "all_reduce of 200000 Float"), said.c_str());
    } else {
      QVERIFY2(contains(said, "a peer did not come within 1500 ms"), said.c_str());
    }
    QVERIFY(ranks.wait_for_end(0));
  }

  void a_rank_that_is_killed_during_a_message_is_named_data() { backends(); }
  void a_rank_that_is_killed_during_a_message_is_named() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_a_message", 2, {.arguments = {backend.toStdString(), "60000"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "waiting", 60s).empty());
    ranks.send_signal(1, SIGKILL);
    const std::string said = ranks.wait_for(0, "error", 10s);
    QVERIFY2(contains(said, name_of(ranks, 1) + " ended"), said.c_str());
    QVERIFY2(contains(said, "receive"), said.c_str());
  }

  /// Whichever rank times out first, it never names a rank that is itself waiting.
  void the_rank_at_the_end_of_a_chain_of_messages_is_named() {
    for (int round = 0; round < 5; ++round) {
      RankGroup ranks("waits_for_a_message", 4, {.arguments = {"shm", "700"}});
      for (const int rank : {0, 1, 2}) {
        const std::string said = ranks.wait_for(rank, "error", 60s);
        QVERIFY2(contains(said, name_of(ranks, 3) + " did not come within 700 ms"), said.c_str());
        QVERIFY2(contains(said, "(the test's time-out)"), said.c_str());
      }
    }
  }

  /// A stage may have the work of many micro-steps before it can send: as long as any stages exchange something, none
  /// is lost.
  void a_stage_that_is_only_slow_is_waited_for() {
    RankGroup ranks("waits_for_a_slow_stage", 3, {.arguments = {"shm", "1500"}});
    ACCRUE_ALL_RANKS_OK(ranks.finish(30s));
  }

  void a_peer_that_sends_nothing_ends_in_a_time_out() {
    RankGroup ranks("waits_for_a_message", 2, {.arguments = {"gloo", "1500"}});
    const std::string said = ranks.wait_for(0, "error", 60s);
    QVERIFY2(contains(said, name_of(ranks, 1) + " did not come within 1500 ms"), said.c_str());
  }

  void a_rank_that_leaves_is_named() {
    for (const auto& [call, words] :
         {std::pair("barrier", "left the group"), std::pair("send", "send of 2000000 Float")}) {
      RankGroup ranks("one_leaves", 2, {.arguments = {call}});
      QVERIFY(ranks.wait_for_end(0));
      const std::string said = ranks.wait_for(0, "rank 1", 1s);
      QVERIFY2(contains(said, "left the group") && contains(said, words), said.c_str());
    }
  }

  /// The clock continues during a freeze; the rank that wakes first must not blame a peer that was frozen like itself.
  void a_group_that_was_frozen_longer_than_the_time_out_goes_on_data() { backends(); }
  void a_group_that_was_frozen_longer_than_the_time_out_goes_on() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_a_signal", 2, {.arguments = {backend.toStdString(), "3000"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "waiting", 60s).empty());
    for (const int rank : {0, 1}) ranks.send_signal(rank, SIGSTOP);
    for (const int rank : {0, 1}) QTRY_COMPARE(state_of(ranks.pid(rank)), 'T');
    QVERIFY(ranks.wait_for(0, "error", 4s).empty());  // frozen for longer than 3000 ms
    ranks.send_signal(0, SIGCONT);
    const std::string said = ranks.wait_for(0, "error", 300ms);  // rank 0 looks several times before rank 1 can move
    QVERIFY2(said.empty(), said.c_str());
    ranks.send_signal(1, SIGCONT);
    ranks.send_signal(1, SIGUSR1);
    ACCRUE_ALL_RANKS_OK(ranks.finish(30s));
  }

  void an_untimed_call_outlasts_the_time_out_data() { backends(); }
  void an_untimed_call_outlasts_the_time_out() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_a_signal", 2, {.arguments = {backend.toStdString(), "500", "untimed"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "waiting", 60s).empty());
    const std::string said = ranks.wait_for(0, "error", 1500ms);
    QVERIFY2(said.empty(), said.c_str());
    ranks.send_signal(1, SIGUSR1);
    ACCRUE_ALL_RANKS_OK(ranks.finish(30s));
  }

  void an_untimed_call_still_ends_with_its_peer_data() { backends(); }
  void an_untimed_call_still_ends_with_its_peer() {
    QFETCH(QString, backend);
    RankGroup ranks("waits_for_a_signal", 2, {.arguments = {backend.toStdString(), "500", "untimed"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "waiting", 60s).empty());
    QVERIFY(ranks.wait_for(0, "error", 1s).empty());
    ranks.send_signal(1, SIGKILL);
    const std::string said = ranks.wait_for(0, "error", 10s);
    QVERIFY2(contains(said, name_of(ranks, 1) + " ended"), said.c_str());
  }

  void a_rank_that_ends_after_the_last_collective_is_no_failure() {
    for (int round = 0; round < 3; ++round) ACCRUE_ALL_RANKS_OK(RankGroup("ends_at_once", 3).finish(60s));
  }

  void a_store_outlives_the_building_of_a_communicator_data() { backends(); }
  void a_store_outlives_the_building_of_a_communicator() {
    QFETCH(QString, backend);
    for (int round = 0; round < 20; ++round)
      ACCRUE_ALL_RANKS_OK(
          RankGroup("ends_after_meeting", 4, {.arguments = {backend.toStdString()}, .hand_over_store = false})
              .finish(60s));
  }

  void a_store_that_is_gone_is_an_error_and_not_an_exception() {
    RankGroup ranks("finds_no_store", 2, {.hand_over_store = false});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "joined", 60s).empty());
    ranks.send_signal(0, SIGUSR1);
    QVERIFY(ranks.wait_for_end(0));
    ranks.send_signal(1, SIGUSR1);
    const auto outcomes = ranks.finish(30s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    QVERIFY2(contains(outcomes[1].lines.back(), "the meeting point was lost as the ranks built the data axis"),
             outcomes[1].text().c_str());
  }

  void says_how_many_joined_and_who_is_missing() {
    RankGroup ranks("cannot_join", 3, {.leave_out = {1}});
    const auto outcomes = ranks.finish(30s);
    for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
      QVERIFY2(outcomes[rank].ok(), outcomes[rank].text().c_str());
      QVERIFY2(contains(outcomes[rank].lines.at(0), "2 of 3 ranks joined within 2 s; missing: rank 1"),
               outcomes[rank].text().c_str());
    }
  }

  void says_that_rank_0_did_not_come() {
    const auto alone = RankGroup("cannot_join", 2, {.leave_out = {0}}).finish(30s);
    QVERIFY2(contains(alone[1].lines.at(0), "1 of 2 ranks joined within 2 s; missing: rank 0"),
             alone[1].text().c_str());
    RankGroup ranks("cannot_join", 2, {.leave_out = {0}, .hand_over_store = false});
    const auto outcomes = ranks.finish(30s);
    QVERIFY2(outcomes[1].ok(), outcomes[1].text().c_str());
    QVERIFY2(contains(outcomes[1].lines.at(0), "rank 1 could not reach the ranks' meeting point 127.0.0.1:"),
             outcomes[1].text().c_str());
  }

  void names_a_port_that_is_taken() {
    const LoopbackListener other;
    QVERIFY(other.port != 0);
    RankGroup ranks(
        "cannot_join", 2,
        {.environment = {{"MASTER_PORT", std::to_string(other.port)}}, .leave_out = {1}, .hand_over_store = false});
    const auto outcomes = ranks.finish(30s);
    QVERIFY2(outcomes[0].ok(), outcomes[0].text().c_str());
    QVERIFY2(contains(outcomes[0].lines.at(0), ":" + std::to_string(other.port) + " is taken by another program"),
             outcomes[0].text().c_str());
  }

  void ranks_of_one_secret_meet_and_others_do_not() {
    for (const char* backend : {"shm", "gloo"}) {
      const RankGroupOptions with_secret{
          .arguments = {backend}, .environment = {{"ACCRUE_RUN_SECRET", "s3cret"}}, .hand_over_store = false};
      const auto met = RankGroup("joins_and_ends", 2, with_secret).finish(60s);
      ACCRUE_ALL_RANKS_OK(met);
      for (const auto& each : met) {
        QCOMPARE(each.lines.at(0), std::string("torchrun ") + backend);
        QVERIFY2(contains(each.lines.at(1), "guarded by the run's secret"), each.text().c_str());
      }
    }
    const auto open = RankGroup("joins_and_ends", 2, {.hand_over_store = false}).finish(60s);
    ACCRUE_ALL_RANKS_OK(open);
    for (const auto& each : open)
      QVERIFY2(contains(each.lines.at(1), "open to whoever reaches it"), each.text().c_str());
    // A rank that does not know the secret and the others ignore each other.
    const auto apart = RankGroup("cannot_join_by_secret", 2, {.hand_over_store = false}).finish(60s);
    ACCRUE_ALL_RANKS_OK(apart);
    const std::string& host = apart[0].lines.at(0);
    QVERIFY2(contains(host, "1 of 2 ranks joined") && contains(host, "ACCRUE_RUN_SECRET"), host.c_str());
  }

  void joins_without_a_supervisor_on_a_port_of_its_own() {
    const auto outcomes = RankGroup("joins_and_ends", 2, {.hand_over_store = false}).finish(60s);
    ACCRUE_ALL_RANKS_OK(outcomes);
    for (const auto& each : outcomes) QCOMPARE(each.lines.at(0), std::string("torchrun shm"));
  }

  void listens_on_loopback_only_data() { backends(); }
  void listens_on_loopback_only() {
    QFETCH(QString, backend);
    for (const bool handed_over : {true, false}) {
      RankGroup ranks("stands_still", 2, {.arguments = {backend.toStdString()}, .hand_over_store = handed_over});
      for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "standing", 60s).empty());
      const Listeners found = listeners_of({ranks.pid(0), ranks.pid(1)});
      QVERIFY2(found.beyond.isEmpty(), found.beyond.value(0).constData());
      // Handed over, the store is memory; else it listens itself, so the scan does see listeners.
      QCOMPARE(found.loopback > 0, !handed_over || backend == QStringLiteral("gloo"));
    }
  }

  void leaves_no_shared_memory_behind() {
    const auto files = [] { return QDir(QStringLiteral("/dev/shm")).entryList(QDir::Files); };
    const QStringList before = files();
    RankGroup ranks("stands_still", 2, {.arguments = {"shm"}});
    for (const int rank : {0, 1}) QVERIFY(!ranks.wait_for(rank, "standing", 60s).empty());
    const QSet<QByteArray> segments = segments_of(ranks.pid(0));
    QVERIFY(!segments.isEmpty());
    QCOMPARE(segments_of(ranks.pid(1)), segments);
    for (const int rank : {0, 1}) ranks.send_signal(rank, SIGKILL);
    for (const auto& each : ranks.finish(10s)) QCOMPARE(each.signal, SIGKILL);
    for (const QString& pid : QDir(QStringLiteral("/proc")).entryList(QDir::Dirs))
      QVERIFY2(!segments_of(pid.toInt()).intersects(segments), qPrintable(pid));
  }
};

ACCRUE_RANK_TEST_MAIN(TestLostRanks,
                      {RANK_BODY(waits_for_the_last), RANK_BODY(waits_for_a_message), RANK_BODY(waits_for_a_slow_stage),
                       RANK_BODY(one_leaves), RANK_BODY(cannot_join_by_secret), RANK_BODY(waits_for_a_signal),
                       RANK_BODY(ends_at_once), RANK_BODY(ends_after_meeting), RANK_BODY(finds_no_store),
                       RANK_BODY(cannot_join), RANK_BODY(stands_still), RANK_BODY(joins_and_ends)})

}  // namespace test_lost_ranks
#include "test_lost_ranks.moc"
