// SPDX-License-Identifier: Apache-2.0
// The rank's side of the channel: a thread that sends events and heartbeats and obeys commands while the training
// thread works or waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "accrue/run/base/monotonic_clock.h"
#include "accrue/run/events/rank_command.h"
#include "accrue/run/events/run_event.h"

namespace fake_rank {

struct Requests {
  bool checkpoint = false;
  bool stop = false;
  std::int64_t steps = 0;  ///< N from the next window on; 0 = unchanged
};

class Channel {
 public:
  struct Settings {
    int fd = -1;
    std::int64_t rank = 0;
    std::int64_t first_seq = 0;
    std::int64_t origin_ns = 0;
    bool deaf = false;
    std::int64_t late_ms = 0;  ///< nothing is sent so long
  };
  explicit Channel(Settings settings);
  /// Sends the waiting events, then closes.
  ~Channel();

  void emit(accrue::EventBody body);
  void send_raw(std::string line);
  void skip_numbers(std::int64_t count);
  void set_phase(std::string phase, std::int64_t update, std::int64_t micro_step, std::int64_t collective);
  std::int64_t now_ns() const;

  /// Pauses the training thread if that was agreed; false if the run must end after this micro-step.
  bool after_micro_step(std::int64_t micro_step);
  /// Pauses after this phase if the ranks are stepped to there. `report` is called first.
  void after_phase(accrue::StepPhase phase, std::int64_t micro_step, const std::function<void()>& report);
  /// Pauses on the rank's own initiative until a proceed; false on a stop.
  bool stand_still(std::int64_t micro_step);
  /// The commands for the next boundary, all of one moment. Steps are returned once, the others until they are done.
  Requests take_requests();
  void checkpoint_done();
  /// Pretends to work for a time, by sleeping.
  void work(double seconds);
  void wait_for_ever();

 private:
  void run();
  void take_commands();
  void obey(const accrue::RankCommand& command);
  void queue_event(accrue::EventBody body);
  bool flush();
  bool is_late() const { return accrue::monotonic_ns() < late_until_ns_; }

  Settings settings_;
  int wake_fd_ = -1;
  std::int64_t late_until_ns_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string outbox_;
  std::string inbox_;
  std::int64_t seq_ = 0;
  accrue::Heartbeat heartbeat_;
  bool announce_ = false;       ///< the next heartbeat is due at once
  std::int64_t in_flight_ = 1;  ///< micro-step that the training thread is in
  std::optional<std::int64_t> hold_after_;
  std::optional<std::int64_t> stop_after_;
  std::optional<std::int64_t> hold_in_;
  bool next_phase_ = false;
  bool inside_ = false;
  std::int64_t moves_ = 0;
  bool asked_to_hold_ = false;
  bool announced_ = false;  ///< Holding{.., true} has been sent for this pause
  bool stepping_ = false;
  bool checkpoint_ = false;
  bool stop_at_boundary_ = false;
  std::int64_t steps_ = 0;
  bool supervisor_gone_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace fake_rank
