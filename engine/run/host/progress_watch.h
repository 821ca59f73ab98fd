// SPDX-License-Identifier: Apache-2.0
// Who makes no progress. A rank's channel thread repeats its heartbeat as long as the process runs, so silence means
// that the process is stopped; whether a rank that talks is stuck or slow is judged by what it gets done (phase,
// update, micro-step, collective). When one rank stops, its peers soon wait for it in a collective: the culprit is the
// rank that fell silent, else the one that got least far.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "accrue/run/run_event.h"

namespace accrue {

class ProgressWatch {
 public:
  using Clock = std::chrono::steady_clock;

  ProgressWatch(std::size_t ranks, Clock::time_point now);
  void heard(std::size_t rank, const Heartbeat& heartbeat, Clock::time_point now);
  /// An event that only progress produces.
  void worked(std::size_t rank, Clock::time_point now);
  void gone(std::size_t rank) { ranks_[rank].gone = true; }
  /// Forgets the past: after a pause or a restart.
  void restart(Clock::time_point now);
  /// Leaves a while out in which nobody looked, and all may have stood still: it counts as no time, and no more than it
  /// is forgiven, so that a rank which hangs is blamed in the end however often nobody looks.
  void leave_out(Clock::duration gap, Clock::time_point now);

  const Heartbeat& last(std::size_t rank) const { return ranks_[rank].heartbeat; }
  /// The ranks to blame once nothing has moved for `limit`, none otherwise: the silent ones where there are any.
  std::vector<std::size_t> stalled(Clock::time_point now, Clock::duration limit) const;
  /// Ranks without a sign of life for `limit`, or for 10 s where that is less.
  std::vector<std::size_t> silent(Clock::time_point now, Clock::duration limit) const;
  /// A rank without a sign of life for `limit` while another one has just given one: its process does not run.
  std::optional<std::size_t> stopped(Clock::time_point now, Clock::duration limit) const;
  /// Ranks without progress for `limit`, whatever they do.
  std::vector<std::size_t> motionless(Clock::time_point now, Clock::duration limit) const;
  /// Ranks that write to a disk (checkpoint, final model) and have done so for `limit`.
  std::vector<std::size_t> writing(Clock::time_point now, Clock::duration limit) const;
  /// Of the ranks that still run, the one that those which are gone gave up waiting for; none if they lost something
  /// else.
  std::optional<std::size_t> awaited(Clock::time_point now) const;
  /// Since when the rank has made no progress.
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
