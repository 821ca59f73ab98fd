// SPDX-License-Identifier: Apache-2.0
// A rank's channel to the process that keeps the run's record: events up, commands down, over a socket to the
// supervisor or to rank 0; or events to standard output without a keeper. A channel thread does both, so training never
// blocks on a slow reader, and heartbeats continue while a kernel runs or a disk is slow. When the other side is gone,
// the channel requests a checkpoint and the end at the next boundary. It also sets a deadline: the process ends then,
// so no orphan remains.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "accrue/run/base/owned_fd.h"
#include "accrue/train/rank_channel.h"
#include "rank/event_outbox.h"
#include "rank/hold_gate.h"

namespace accrue {

struct ChannelOptions {
  int fd = -1;               ///< owned by the caller
  bool commands = true;      ///< a socket that carries commands; false: write only (standard output)
  bool end_signals = false;  ///< SIGTERM and SIGINT, blocked by the caller, mean checkpoint and stop
  std::int64_t rank = 0;
  std::int64_t origin_ns = 0;
  std::int64_t first_seq = 0;
  std::chrono::milliseconds orphan_deadline{30000};
  /// Action at the deadline; by default ends the process with the status of a lost peer.
  std::function<void()> on_orphan_deadline;
  /// Action of a command to end at once; by default the same as at the deadline. If it returns, the channel is closed.
  std::function<void()> on_end_now;
};

class ProcessChannel final : public RankChannel {
 public:
  explicit ProcessChannel(ChannelOptions options);
  ~ProcessChannel() override;

  void send(EventBody body) override;
  void progress(const char* phase, std::int64_t update, std::int64_t micro_step) override;
  void collective_begun() override { collective_.fetch_add(1, std::memory_order_relaxed); }
  Gate before_micro_step(std::int64_t micro_step, const std::function<void()>& catch_up) override {
    return gate_.wait_before(micro_step, catch_up);
  }
  void after_phase(StepPhase phase, const std::function<void()>& catch_up) override {
    gate_.wait_after(phase, catch_up);
  }
  BoundaryRequests boundary_requests() override { return gate_.take_requests(); }
  void hold_here() override { gate_.hold_here(); }
  void close() override;

 private:
  void run();
  void poll_once(int timeout_ms);
  int timeout_ms() const;
  void heartbeat();
  void fill_outgoing(bool all);
  void write_some();
  void read_commands();
  void take_command_lines();
  void read_signal();
  void lose_supervisor();
  void check_deadline();
  void wake();

  ChannelOptions options_;
  EventOutbox outbox_;
  HoldGate gate_;
  OwnedFd wake_fd_;
  OwnedFd signal_fd_;
  std::string outgoing_;
  std::string incoming_;
  bool gone_ = false;
  std::int64_t deadline_ns_ = 0;
  std::int64_t heartbeat_ns_ = 0;
  std::atomic<bool> announce_{false};  ///< the next heartbeat is due at once
  std::atomic<const char*> phase_{"join"};
  std::atomic<std::int64_t> update_{0};
  std::atomic<std::int64_t> micro_step_{0};
  std::atomic<std::int64_t> collective_{0};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace accrue
