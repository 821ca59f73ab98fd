// SPDX-License-Identifier: Apache-2.0
// Failures of a run, and the decision whether to restart it. A lost rank makes its peers fail too. Exits that a lost
// peer would explain are held back for a moment, and dropped if the rank that caused them is found. A value that
// receives the time. Thread: engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/process/child_process.h"

namespace accrue {

class FailureBook {
 public:
  using Clock = std::chrono::steady_clock;
  struct Failure {
    ErrorCode code = ErrorCode::unset;
    std::string message;
  };

  // An attempt.
  void begin_attempt();
  /// Records a failure; the first one of an attempt is the run's.
  void note(ErrorCode code, std::string message);
  const std::optional<Failure>& failure() const { return failure_; }
  /// Returns true if a lost peer would explain this exit; it is then kept until settling_is_due().
  bool hold_back(std::size_t rank, const ExitReport& exit, ErrorCode code, Clock::time_point now);
  /// Whether no cause turned up in time: the exits that were held back are the failure.
  bool settling_is_due(Clock::time_point now) const { return !held_back_.empty() && now >= settle_at_; }
  /// Takes those exits.
  std::vector<std::pair<std::size_t, ExitReport>> take_held_back() { return std::exchange(held_back_, {}); }
  /// Ignores an interval in which this process was suspended.
  void leave_out(Clock::duration gap) { settle_at_ += gap; }
  void checkpoint_committed() { ++commits_; }

  // Restarts. `most`: launch.max_restarts, within ten minutes.
  /// Whether another attempt may avoid the failure, and restarts are left: `most` within ten minutes, and at most two
  /// without a new checkpoint.
  bool may_restart(std::int64_t most, Clock::time_point now) const;
  /// Returns why a failed run was not restarted, to append to its reason; empty if it never was.
  std::string no_restart_text(std::int64_t most, Clock::time_point now) const;
  void restarted(Clock::time_point now);
  std::int64_t restarts() const { return restarts_; }
  /// Restarts within the last ten minutes.
  std::int64_t recent_restarts(Clock::time_point now) const;

 private:
  std::int64_t fruitless_after_this() const;

  std::optional<Failure> failure_;
  std::vector<std::pair<std::size_t, ExitReport>> held_back_;
  Clock::time_point settle_at_{};
  std::int64_t commits_ = 0;  ///< checkpoints committed in this attempt
  std::int64_t restarts_ = 0;
  std::int64_t fruitless_ = 0;  ///< consecutive restarts without a new checkpoint, before this one
  std::deque<Clock::time_point> recent_;
};

/// Returns the class of a failure by its name in an event; internal if unknown.
ErrorCode code_of_name(std::string_view name);
/// Returns the class of a failure of which only the exit status is known.
ErrorCode code_of_exit(const ExitReport& exit);
/// Describes how a rank ended: "Rank 3 was killed (signal 9)".
std::string cause_text(const std::string& rank, const ExitReport& exit);
/// Whether resuming would meet the same failure again.
bool stays_broken(ErrorCode code);

}  // namespace accrue
