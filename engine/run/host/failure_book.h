// SPDX-License-Identifier: Apache-2.0
// What failed in a run, and whether it may start again. A lost rank makes its peers fail, too: exits that this would
// explain are held back for a moment, and dropped if the rank that caused them is found. A value that is told the
// time. Thread: engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accrue/run/child_process.h"
#include "accrue/run/result.h"

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
  /// The first failure of an attempt is the run's.
  void note(ErrorCode code, std::string message);
  const std::optional<Failure>& failure() const { return failure_; }
  /// True where a lost peer would explain this exit: it is kept until settling_is_due().
  bool hold_back(std::size_t rank, const ExitReport& exit, ErrorCode code, Clock::time_point now);
  /// No cause has turned up in time: the exits that were held back are the failure.
  bool settling_is_due(Clock::time_point now) const { return !held_back_.empty() && now >= settle_at_; }
  /// Those exits, which are held back no longer.
  std::vector<std::pair<std::size_t, ExitReport>> take_held_back() { return std::exchange(held_back_, {}); }
  /// Leaves a while out in which this process stood still.
  void leave_out(Clock::duration gap) { settle_at_ += gap; }
  void checkpoint_committed() { ++commits_; }

  // Restarts. `most`: launch.max_restarts, within ten minutes.
  /// The failure is one that another attempt may not meet, and restarts are left: within the ten minutes, and two that
  /// bring no new checkpoint.
  bool may_restart(std::int64_t most, Clock::time_point now) const;
  /// Why a failed run was not started again, as an addition to its reason; empty where it never was.
  std::string no_restart_text(std::int64_t most, Clock::time_point now) const;
  void restarted(Clock::time_point now);
  std::int64_t restarts() const { return restarts_; }
  /// Within the last ten minutes.
  std::int64_t recent_restarts(Clock::time_point now) const;

 private:
  std::int64_t fruitless_after_this() const;

  std::optional<Failure> failure_;
  std::vector<std::pair<std::size_t, ExitReport>> held_back_;
  Clock::time_point settle_at_{};
  std::int64_t commits_ = 0;  ///< checkpoints committed in this attempt
  std::int64_t restarts_ = 0;
  std::int64_t fruitless_ = 0;  ///< restarts in a row that brought no checkpoint, without this one
  std::deque<Clock::time_point> recent_;
};

/// The class of a failure by its name in an event; internal where there is none of that name.
ErrorCode code_of_name(std::string_view name);
/// The class of a failure that is known by its exit status alone.
ErrorCode code_of_exit(const ExitReport& exit);
/// How a rank ended: "Rank 3 was killed (signal 9)".
std::string cause_text(const std::string& rank, const ExitReport& exit);
/// Resuming would meet the same failure again.
bool stays_broken(ErrorCode code);

}  // namespace accrue
