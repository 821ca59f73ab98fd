// SPDX-License-Identifier: Apache-2.0
// Detection of ranks without progress. A rank's channel thread repeats its heartbeat as long as the process runs, so
// silence means a stopped process. Whether an active rank is stuck or slow is judged by its progress (phase, update,
// micro-step, collective). When one rank stops, its peers soon wait for it in a collective: the culprit is the silent
// rank, else the one that got least far.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/events/run_event.h"

namespace accrue {

class ProgressWatch {
 public:
  using Clock = std::chrono::steady_clock;

  ProgressWatch(std::size_t ranks, Clock::time_point now);
  void heard(std::size_t rank, const Heartbeat& heartbeat, Clock::time_point now);
  /// Records an event that only progress produces.
  void worked(std::size_t rank, Clock::time_point now);
  void gone(std::size_t rank) { ranks_[rank].gone = true; }
  /// Forgets the past, after a pause or a restart.
  void restart(Clock::time_point now);
  /// Ignores an interval without observation, in which all ranks may have been suspended. The allowance is limited, so
  /// that a hanging rank is blamed eventually, however often this happens.
  void leave_out(Clock::duration gap, Clock::time_point now);

  const Heartbeat& last(std::size_t rank) const { return ranks_[rank].heartbeat; }
  /// Returns the ranks to blame if nothing has moved for `limit`, else none: the silent ones if there are any.
  std::vector<std::size_t> stalled(Clock::time_point now, Clock::duration limit) const;
  /// Ranks without a sign of life for `limit`, at most 10 s.
  std::vector<std::size_t> silent(Clock::time_point now, Clock::duration limit) const;
  /// A rank without a sign of life for `limit` while another one just gave one: its process is stopped.
  std::optional<std::size_t> stopped(Clock::time_point now, Clock::duration limit) const;
  /// Ranks without progress for `limit`, for any reason.
  std::vector<std::size_t> motionless(Clock::time_point now, Clock::duration limit) const;
  /// Ranks that have been writing to a disk (checkpoint, final model) for `limit`.
  std::vector<std::size_t> writing(Clock::time_point now, Clock::duration limit) const;
  /// Returns the running rank for which the lost ranks gave up waiting; none if they lost something else.
  std::optional<std::size_t> awaited(Clock::time_point now) const;
  /// Time of the rank's last progress.
  Clock::time_point last_progress(std::size_t rank) const { return ranks_[rank].progress; }

 private:
  struct Rank {
    Heartbeat heartbeat;
    Clock::time_point sign_of_life;
    Clock::time_point progress;
    bool gone = false;
  };
  std::vector<std::size_t> living(const std::function<bool(const Rank&)>& which) const;

  std::vector<Rank> ranks_;
};

}  // namespace accrue
