// SPDX-License-Identifier: Apache-2.0
// The rank's end of the supervisor's socket: what goes up in which order, what each command does to the training
// thread, and what happens when the other side is gone. The test is the supervisor; a second thread is the training.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QRegularExpression>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "accrue/run/events/event_codec.h"
#include "accrue/run/events/rank_command.h"
#include "rank/process_channel.h"
#include "rank/tcp_socket.h"
#include "support/test_program.h"

using namespace accrue;
using namespace std::chrono_literals;

namespace {

constexpr auto deadline = 60s;  // a sanitizer on a loaded machine takes its time

template <typename Condition>
bool eventually(Condition&& condition) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A listener of 127.0.0.1 with one place for who waits to be let in.
struct Listening {
  Listening() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ok = ::bind(socket.get(), generic(), size) == 0 && ::listen(socket.get(), 0) == 0 &&
         ::getsockname(socket.get(), generic(), &size) == 0;
  }
  /// From now on connections get no answer.
  void fill_up() {
    while (true) {
      waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(waiting.back().get(), generic(), sizeof address);
      pollfd connected{waiting.back().get(), POLLOUT, 0};
      if (::poll(&connected, 1, 100) == 0) return;
    }
  }
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address); }
  addrinfo info(addrinfo* next) {
    addrinfo made{};
    made.ai_family = AF_INET;
    made.ai_addr = generic();
    made.ai_addrlen = sizeof address;
    made.ai_next = next;
    return made;
  }
  OwnedFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  bool ok = false;
  std::vector<OwnedFd> waiting;
};

/// The supervisor's side.
class Peer {
 public:
  Peer() { ok_ = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_) == 0; }
  ~Peer() {
    hang_up();
    ::close(fds_[1]);
  }
  bool ok() const { return ok_; }
  int rank_fd() const { return fds_[1]; }
  void hang_up() {
    if (fds_[0] >= 0) ::close(std::exchange(fds_[0], -1));
  }
  void command(RankCommandKind kind, std::int64_t micro_step = 0) { send({kind, micro_step}); }
  void send(const RankCommand& command) {
    const std::string line = encode_command(command) + "\n";
    QCOMPARE(::send(fds_[0], line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
  }
  void raw(const std::string& bytes) { QVERIFY(::send(fds_[0], bytes.data(), bytes.size(), 0) > 0); }
  /// Reads until an event satisfies `wanted`; false at the deadline. Everything read stays in `seen`.
  template <typename Wanted>
  bool wait(Wanted&& wanted) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    while (std::chrono::steady_clock::now() < until) {
      for (; looked_at_ < seen.size(); ++looked_at_)
        if (wanted(seen[looked_at_])) {
          ++looked_at_;
          return true;
        }
      read_some(100);
    }
    return false;
  }
  template <typename Body, typename Wanted>
  bool wait_for(const Wanted& wanted) {
    return wait([&](const RunEvent& event) {
      const auto* body = std::get_if<Body>(&event.body);
      return body && wanted(*body);
    });
  }
  bool wait_holding(std::int64_t micro_step, bool held) {
    return wait_for<Holding>([&](const Holding& at) { return at.micro_step == micro_step && at.held == held; });
  }
  /// The rank has not begun, and will stand still after a micro-step.
  bool hold_before_the_start(std::int64_t after) {
    command(RankCommandKind::hold_after, after);
    command(RankCommandKind::hold);
    return wait_holding(0, false);
  }
  bool wait_update(std::int64_t number) {
    return wait_for<Update>([&](const Update& update) { return update.update == number; });
  }
  bool wait_beat(const std::string& phase) {
    return wait_for<Heartbeat>([&](const Heartbeat& beat) { return beat.phase == phase; });
  }
  void read_some(int milliseconds) {
    pollfd ready{fds_[0], POLLIN, 0};
    if (::poll(&ready, 1, milliseconds) <= 0) return;
    char bytes[65536];
    const auto count = ::recv(fds_[0], bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return;
    partial_.append(bytes, static_cast<std::size_t>(count));
    std::size_t at = 0;
    for (std::size_t end; (end = partial_.find('\n', at)) != std::string::npos; at = end + 1) {
      auto event = decode_event(std::string_view(partial_).substr(at, end - at));
      if (event)
        seen.push_back(std::move(*event));
      else
        ++unreadable;
    }
    partial_.erase(0, at);
  }

  std::vector<RunEvent> seen;
  int unreadable = 0;

 private:
  int fds_[2] = {-1, -1};
  bool ok_ = false;
  std::size_t looked_at_ = 0;
  std::string partial_;
};

/// A training thread that does nothing but count micro-steps, one each time it is let.
class Trainee {
 public:
  Trainee(RankChannel& channel, Peer& peer) : channel_(channel), peer_(peer) {}
  /// Without a supervisor nothing is held, so a failed check cannot leave the thread standing.
  ~Trainee() {
    peer_.hang_up();
    if (thread_.joinable()) thread_.join();
  }
  /// Micro-steps first..last; the gate may stop it earlier.
  void start(std::int64_t first, std::int64_t last) {
    thread_ = std::thread([this, first, last] {
      for (std::int64_t m = first; m <= last; ++m) {
        if (channel_.before_micro_step(m, [] {}).stop) {
          stopped_before = m;
          break;
        }
        for (const StepPhase phase : {StepPhase::forward, StepPhase::scale, StepPhase::backward})
          channel_.after_phase(phase, [this] { ++caught_up; });
        done = m;
      }
      ended = true;
    });
  }

  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> stopped_before{0};
  std::atomic<bool> ended{false};
  std::atomic<int> caught_up{0};  ///< reports before standing after a phase

 private:
  RankChannel& channel_;
  Peer& peer_;
  std::thread thread_;
};

ChannelOptions options_for(const Peer& peer) {
  return {.fd = peer.rank_fd(), .rank = 3, .origin_ns = monotonic_ns(), .first_seq = 5};
}

MicroSteps one_micro_step(std::int64_t m) {
  return {{m}, {1}, {m}, {50}, {0}, {m - 1}, {0.5}, {8}, {2}, {m * 10}, {9}};
}

}  // namespace

class TestRankChannel : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void numbers_events_without_gaps_from_the_given_seq() {
    Peer peer;
    QVERIFY(peer.ok());
    ProcessChannel channel(options_for(peer));
    for (int i = 0; i < 50; ++i) {
      channel.send(one_micro_step(i + 1));
      channel.progress("forward", 1, i + 1);
      if (i % 10 == 9) channel.send(Update{.update = i / 10 + 1});
    }
    channel.close();
    std::int64_t expected = 5;
    std::int64_t micro_steps = 0;
    QVERIFY(peer.wait_update(5));
    for (const RunEvent& event : peer.seen) {
      QCOMPARE(event.rank, 3);
      QVERIFY(event.time_ns >= 0);
      if (!is_stored(event.body)) {
        QCOMPARE(event.seq, -1);
        continue;
      }
      QCOMPARE(event.seq, expected++);
      if (const auto* trace = std::get_if<MicroSteps>(&event.body))
        for (const std::int64_t m : trace->micro_step) QCOMPARE(m, ++micro_steps);  // none lost, none out of order
      if (const auto* update = std::get_if<Update>(&event.body))
        QCOMPARE(update->update * 10, micro_steps);  // what came before an update was flushed before it
    }
    QCOMPARE(micro_steps, 50);
    QCOMPARE(peer.unreadable, 0);
  }

  void flushes_micro_steps_that_nothing_follows() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    channel.send(one_micro_step(1));
    channel.send(one_micro_step(2));
    QVERIFY(peer.wait_for<MicroSteps>([](const MicroSteps& trace) { return trace.micro_step.back() == 2; }));
  }

  void goes_on_beating_when_nothing_moves() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    const auto beats_at = [&](std::int64_t m) {
      return peer.wait_for<Heartbeat>([m](const Heartbeat& beat) {
        return beat.micro_step == m && beat.phase == "backward" && beat.collective == 1;
      });
    };
    channel.collective_begun();
    channel.progress("backward", 2, 7);
    for (int i = 0; i < 5; ++i) QVERIFY(beats_at(7));  // a slow disk or a long kernel: alive all the same
    channel.progress("backward", 2, 8);
    QVERIFY(beats_at(8));
  }

  void says_which_operation_is_in_flight() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    const auto says = [&](const std::string& words) {
      return peer.wait_for<Heartbeat>([&](const Heartbeat& beat) { return beat.operation == words; });
    };
    CurrentOperation& operation = channel.operation();
    operation.begins({PipelineAction::backward, 2, 1}, 7, 2);
    QVERIFY(says("backward of micro-step 7, chunk 1"));
    operation.waits_in("all_reduce", "tensor");
    QVERIFY(says("backward of micro-step 7, chunk 1: all_reduce over the tensor ranks"));
    operation.goes_on();
    QVERIFY(says("backward of micro-step 7, chunk 1"));
    operation.begins({PipelineAction::receive_input, 3, 0, 0}, 8, 1);
    operation.waits_in("receive", "pipeline");
    QVERIFY(says("receiving the input of micro-step 8 from stage 0"));
    operation.begins({PipelineAction::send_gradient, 3, 0, 1}, 8, 1);
    QVERIFY(says("sending the gradient of micro-step 8 to stage 1"));
    operation.ends();
    operation.waits_in("reduce_scatter", "data");
    QVERIFY(says("reduce_scatter over the data ranks"));
    operation.goes_on();
    QVERIFY(says(""));
  }

  void announces_a_checkpoint_before_the_next_heartbeat_is_due() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    channel.progress("backward", 2, 7);
    QVERIFY(peer.wait_beat("backward"));
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {  // regular heartbeats alone would take 4 s
      channel.progress("checkpoint", 2, 8);
      QVERIFY(peer.wait_beat("checkpoint"));
      channel.progress("forward", 2, 9);
      QVERIFY(peer.wait_beat("forward"));
    }
    QVERIFY(std::chrono::steady_clock::now() - begin < 2s);
  }

  void stands_still_after_the_agreed_micro_step_and_goes_on() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    peer.command(RankCommandKind::hold);  // before anything ran: it holds at 0 until told better
    QVERIFY(peer.wait_holding(0, false));
    trainee.start(1, 9);
    peer.command(RankCommandKind::hold_after, 4);
    QVERIFY(peer.wait_holding(4, true));
    QCOMPARE(trainee.done.load(), 4);
    peer.command(RankCommandKind::proceed);
    QVERIFY(eventually([&] { return trainee.done == 9; }));
  }

  void says_paused_while_it_stands() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    QVERIFY(peer.hold_before_the_start(2));
    trainee.start(1, 3);
    QVERIFY(peer.wait_beat("paused"));
    peer.command(RankCommandKind::proceed);
    QVERIFY(eventually([&] { return trainee.done == 3; }));
  }

  void steps_one_micro_step_at_a_time() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    QVERIFY(peer.hold_before_the_start(2));
    trainee.start(1, 9);
    QVERIFY(peer.wait_holding(2, true));
    peer.command(RankCommandKind::hold_after, 3);  // a step is the next standstill and proceed
    peer.command(RankCommandKind::proceed);
    QVERIFY(peer.wait_holding(3, true));
    QCOMPARE(trainee.done.load(), 3);
    peer.command(RankCommandKind::hold_after, 5);
    peer.command(RankCommandKind::proceed);
    QVERIFY(peer.wait_holding(5, true));
    QCOMPARE(trainee.done.load(), 5);
    peer.command(RankCommandKind::proceed);
    QVERIFY(eventually([&] { return trainee.done == 9; }));
  }

  void steps_one_phase_at_a_time_and_from_there_to_a_micro_steps_end() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    const auto stands_after = [&](std::int64_t micro_step, StepPhase phase) {
      return peer.wait([&](const RunEvent& event) {
        const auto* holding = std::get_if<Holding>(&event.body);
        return holding && *holding == Holding{micro_step, true, phase};
      });
    };
    QVERIFY(peer.hold_before_the_start(2));
    trainee.start(1, 9);
    QVERIFY(peer.wait_holding(2, true));
    for (const StepPhase phase : {StepPhase::forward, StepPhase::scale}) {
      peer.command(RankCommandKind::step_phase);
      QVERIFY(stands_after(3, phase));
    }
    QCOMPARE(trainee.done.load(), 2);
    QCOMPARE(trainee.caught_up.load(), 2);
    peer.command(RankCommandKind::hold_in, 4);  // over the rest of this one
    QVERIFY(stands_after(4, StepPhase::backward));
    QCOMPARE(trainee.done.load(), 3);
    peer.command(RankCommandKind::hold_after, 4);  // inside a micro-step its end is still to come
    peer.command(RankCommandKind::proceed);
    QVERIFY(peer.wait_holding(4, true));
    QCOMPARE(trainee.done.load(), 4);
    peer.command(RankCommandKind::step_phase);
    QVERIFY(stands_after(5, StepPhase::forward));
    peer.command(RankCommandKind::proceed);
    QVERIFY(eventually([&] { return trainee.done == 9; }));
  }

  void stops_after_the_named_micro_step_even_while_it_stands() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    QVERIFY(peer.hold_before_the_start(2));
    trainee.start(1, 9);
    QVERIFY(peer.wait_holding(2, true));
    peer.command(RankCommandKind::stop_after, 5);
    QVERIFY(eventually([&] { return trainee.ended.load(); }));
    QCOMPARE(trainee.done.load(), 5);
    QCOMPARE(trainee.stopped_before.load(), 6);
  }

  void holds_on_its_own_account_and_says_so() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    QVERIFY(!channel.before_micro_step(1, [] {}).stop);
    channel.hold_here();
    Trainee trainee(channel, peer);
    trainee.start(2, 2);
    QVERIFY(peer.wait_holding(1, true));
    QCOMPARE(trainee.done.load(), 0);
    peer.command(RankCommandKind::proceed);
    QVERIFY(eventually([&] { return trainee.done == 2; }));
  }

  void hands_each_checkpoint_request_on_once() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    peer.command(RankCommandKind::checkpoint);
    BoundaryRequests requests;
    QVERIFY(eventually([&] { return (requests = channel.boundary_requests()).checkpoint; }));
    QVERIFY(!requests.stop);
    QVERIFY(!channel.boundary_requests().checkpoint);
    peer.command(RankCommandKind::checkpoint_and_stop);
    QVERIFY(eventually([&] { return (requests = channel.boundary_requests()).stop; }));
    QVERIFY(requests.checkpoint);
  }

  void hands_the_latest_request_for_other_steps_on_once() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    peer.send({.kind = RankCommandKind::set_steps, .steps = 2});
    peer.send({.kind = RankCommandKind::set_steps, .steps = 8});
    peer.command(RankCommandKind::checkpoint);
    BoundaryRequests requests;
    std::int64_t steps = 0;
    QVERIFY(eventually([&] {
      requests = channel.boundary_requests();
      if (requests.steps > 0) steps = requests.steps;
      return requests.checkpoint;
    }));
    QCOMPARE(steps, 8);
    QCOMPARE(channel.boundary_requests().steps, 0);
  }

  void requests_checkpoint_and_end_when_the_supervisor_is_gone() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    Trainee trainee(channel, peer);
    QVERIFY(peer.hold_before_the_start(1));
    trainee.start(1, 3);
    QVERIFY(peer.wait_holding(1, true));
    peer.hang_up();  // no supervisor is left to release it
    QVERIFY(eventually([&] { return trainee.done == 3; }));
    const BoundaryRequests requests = channel.boundary_requests();
    QVERIFY(requests.checkpoint);
    QVERIFY(requests.stop);
    channel.hold_here();  // has no meaning now
    QVERIFY(!channel.before_micro_step(4, [] {}).stop);
    channel.send(Update{.update = 1});  // goes nowhere, harms nothing
    channel.close();
  }

  void ends_the_process_when_the_orphan_deadline_has_passed() {
    Peer peer;
    std::atomic<bool> fired{false};
    ChannelOptions options = options_for(peer);
    options.orphan_deadline = 150ms;
    options.on_orphan_deadline = [&] { fired = true; };
    ProcessChannel channel(options);
    peer.hang_up();
    const auto begin = std::chrono::steady_clock::now();
    QVERIFY(eventually([&] { return fired.load(); }));
    QVERIFY(std::chrono::steady_clock::now() - begin >= 100ms);
  }

  void reports_a_command_it_does_not_understand() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    peer.raw("{\"v\":1,\"command\":\"dance\"}\n");
    QVERIFY(peer.wait_for<Warning>([](const Warning& warning) {
      return warning.class_name == "protocol" && warning.message.find("dance") != std::string::npos;
    }));
  }

  void behind_a_reader_that_does_not_read_memory_is_bounded_and_what_is_missing_is_counted() {
    EventOutbox outbox(0, monotonic_ns(), 0);
    Update update;
    update.weights.assign(930, 0.5);
    constexpr int updates = 20'000;  // 150 MB
    for (update.update = 1; update.update <= updates; ++update.update) {
      outbox.post(one_micro_step(update.update));
      outbox.post(Gauge{});
      outbox.post(update);
    }
    outbox.post(RunFinished{.outcome = "finished"});
    QVERIFY2(outbox.waiting_bytes() < (20U << 20), qPrintable(QString::number(outbox.waiting_bytes())));
    std::int64_t seq = 0;
    std::int64_t told = 0;
    std::int64_t left_out = 0;
    std::string end;
    for (std::string lines; !(lines = outbox.take_lines(monotonic_ns(), true)).empty();) {
      QVERIFY(lines.size() < (4U << 20));
      for (std::size_t at = 0, to = 0; (to = lines.find('\n', at)) != std::string::npos; at = to + 1) {
        const auto event = decode_event(std::string_view(lines).substr(at, to - at));
        QVERIFY(event.has_value());
        QCOMPARE(event->seq, seq++);
        if (const auto* finished = std::get_if<RunFinished>(&event->body)) end = finished->outcome;
        if (const auto* warning = std::get_if<Warning>(&event->body)) {
          QCOMPARE(warning->class_name, std::string("events"));
          const QString message = QString::fromStdString(warning->message);
          const QRegularExpression counts(
              "^(\\d+) micro-step, operation, sync or gauge and (\\d+) other events were left out");
          const auto match = counts.match(message);
          QVERIFY2(match.hasMatch(), qPrintable(message));
          left_out += match.captured(1).toInt() + match.captured(2).toInt();
        } else if (const auto* trace = std::get_if<MicroSteps>(&event->body)) {
          told += std::ssize(trace->micro_step);
        } else {
          ++told;
        }
      }
    }
    QCOMPARE(end, std::string("finished"));
    QVERIFY(left_out > updates);
    QCOMPARE(told + left_out, std::int64_t{3 * updates + 1});
  }

  void never_blocks_on_a_reader_that_does_not_read() {
    Peer peer;
    ProcessChannel channel(options_for(peer));
    constexpr int updates = 20'000;  // far more than the socket's buffer holds
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i <= updates; ++i) {
      channel.send(one_micro_step(i));
      channel.send(Update{.update = i});
    }
    QVERIFY(std::chrono::steady_clock::now() - begin < deadline);
    // The reader wakes up: every update is there, in order, and numbers have no gap; traces may be missing, counted.
    QVERIFY(peer.wait_update(updates));
    std::int64_t seq = 5;
    std::int64_t update_count = 0;
    for (const RunEvent& event : peer.seen) {
      if (is_stored(event.body)) QCOMPARE(event.seq, seq++);
      if (const auto* update = std::get_if<Update>(&event.body)) QCOMPARE(update->update, ++update_count);
    }
  }

  void an_address_without_an_answer_leaves_time_for_the_next_one() {
    Listening silent, answers;
    QVERIFY(silent.ok && answers.ok);
    silent.fill_up();
    addrinfo second = answers.info(nullptr);
    const addrinfo first = silent.info(&second);
    const OwnedFd socket = connect_to_any(&first, std::chrono::steady_clock::now() + 2s);
    QVERIFY(socket.get() >= 0);
    sockaddr_in reached{};
    socklen_t size = sizeof reached;
    QCOMPARE(::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&reached), &size), 0);
    QCOMPARE(reached.sin_port, answers.address.sin_port);
    second = silent.info(nullptr);
    QCOMPARE(connect_to_any(&second, std::chrono::steady_clock::now() + 50ms).get(), -1);
    QCOMPARE(errno, ETIMEDOUT);
  }
};

ACCRUE_TEST_MAIN(TestRankChannel)
#include "test_rank_channel.moc"
