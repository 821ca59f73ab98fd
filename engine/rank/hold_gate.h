// SPDX-License-Identifier: Apache-2.0
// What the supervisor has asked of this rank, and where the training thread must stand still for it. Ranks stop after
// the same micro-step by agreement: each answers a hold with the micro-step it is in and goes no further; the
// supervisor then names the highest, and everyone goes exactly that far. Thread: commands arrive on the channel thread,
// wait_before() is the training thread's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "accrue/run/rank_command.h"
#include "accrue/run/run_event.h"
#include "accrue/train/event_sink.h"

namespace accrue {

class HoldGate {
 public:
  /// `answer` sends a Holding up; called from either thread, outside the lock.
  explicit HoldGate(std::function<void(const Holding&)> answer) : answer_(std::move(answer)) {}

  void apply(const RankCommand& command);
  /// The channel is gone: nobody will release a hold, so none is kept; a checkpoint and the end are wished for.
  void supervisor_gone();

  /// Holds here while micro_step must not begin; `catch_up` is called once before. Thread: training.
  Gate wait_before(std::int64_t micro_step, const std::function<void()>& catch_up);
  /// Holds after the present micro-step on the rank's own account. Thread: training.
  void hold_here();
  /// The wishes that came since the last call; the wish to stop stays. Thread: training.
  BoundaryWishes take_wishes();

  bool standing() const { return standing_.load(std::memory_order_relaxed); }

 private:
  bool must_stand() const { return hold_after_ && in_flight_ >= *hold_after_; }
  bool must_stop() const { return stop_after_ && in_flight_ >= *stop_after_; }
  void release();

  std::function<void(const Holding&)> answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t in_flight_ = 0;              ///< the micro-step that runs, or ran last
  std::optional<std::int64_t> hold_after_;  ///< provisional until agreed_
  bool agreed_ = false;
  bool stepping_ = false;   ///< a step is hold_after from a standstill plus proceed: that proceed clears nothing
  bool announced_ = false;  ///< Holding{.., true} has been sent for this stand
  std::optional<std::int64_t> stop_after_;
  BoundaryWishes wishes_;
  bool gone_ = false;
  std::atomic<bool> standing_{false};
};

}  // namespace accrue
