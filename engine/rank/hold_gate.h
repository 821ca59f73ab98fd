// SPDX-License-Identifier: Apache-2.0
// The supervisor's requests to this rank, and the points at which they pause the training thread. Ranks pause after the
// same micro-step by agreement: each answers a hold with its current micro-step and pauses after it; the supervisor
// then names the highest, and every rank runs exactly that far. From there they can be stepped by phases: all are at
// the same place of the same program, so all reach the same next one. Thread: commands arrive on the channel thread;
// wait_before() and wait_after() are called on the training thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "accrue/run/events/rank_command.h"
#include "accrue/run/events/run_event.h"
#include "accrue/train/rank_channel.h"

namespace accrue {

class HoldGate {
 public:
  /// `answer` sends a Holding to the supervisor; called from either thread, outside the lock.
  explicit HoldGate(std::function<void(const Holding&)> answer) : answer_(std::move(answer)) {}

  void apply(const RankCommand& command);
  /// The channel is closed and nothing can release a hold, so all holds are dropped; requests a checkpoint and the end.
  void supervisor_gone();

  /// Waits while micro_step must not begin; calls `catch_up` once before waiting. Thread: training.
  Gate wait_before(std::int64_t micro_step, const std::function<void()>& catch_up);
  /// Waits after a phase of the current micro-step, if the ranks are stepped to that place. Calls `catch_up` once
  /// before waiting. Thread: training.
  void wait_after(StepPhase phase, const std::function<void()>& catch_up);
  /// Pauses after the current micro-step on the rank's own initiative. Thread: training.
  void hold_here();
  /// Returns the requests since the last call; a request to stop stays. Thread: training.
  BoundaryRequests take_requests();

  bool standing() const { return standing_.load(std::memory_order_relaxed); }

 private:
  bool must_stand() const { return hold_after_ && in_flight_ >= *hold_after_; }
  bool must_stop() const { return stop_after_ && in_flight_ >= *stop_after_; }
  bool must_stand_after(StepPhase phase) const {
    return next_phase_ || (hold_in_ && phase == StepPhase::backward && in_flight_ >= *hold_in_);
  }
  void release();

  std::function<void(const Holding&)> answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t in_flight_ = 0;              ///< the micro-step that runs, or ran last
  std::optional<std::int64_t> hold_after_;  ///< provisional until agreed_
  bool agreed_ = false;
  bool stepping_ = false;   ///< a step is hold_after while paused, then proceed: that proceed clears nothing
  bool announced_ = false;  ///< Holding{.., true} has been sent for this pause
  std::optional<std::int64_t> hold_in_;  ///< micro-step after whose backward the rank pauses
  bool next_phase_ = false;              ///< it pauses after the next phase
  bool inside_ = false;                  ///< it is paused after a phase
  std::int64_t moves_ = 0;               ///< commands that release a rank paused after a phase
  std::optional<std::int64_t> stop_after_;
  BoundaryRequests requests_;
  bool gone_ = false;
  std::atomic<bool> standing_{false};
};

}  // namespace accrue
