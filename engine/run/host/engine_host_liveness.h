// SPDX-License-Identifier: Apache-2.0
// Who makes no progress. Liveness is judged by what a rank gets done (phase, update, micro-step, collective), not by
// signs of life: a stuck rank's channel thread goes on talking. When one rank stands still its peers soon stand still
// in a collective, too; the culprit is the rank that fell silent, else the one that got least far.
#pragma once

#include <chrono>
#include <cstdint>
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
  /// Forgets the past: after a pause, a restart or a machine that slept.
  void restart(Clock::time_point now);

  const Heartbeat& last(std::size_t rank) const { return ranks_[rank].heartbeat; }
  /// The ranks to blame once nothing has moved for `limit`, none otherwise.
  std::vector<std::size_t> stalled(Clock::time_point now, Clock::duration limit) const;
  /// Since when the rank has made no progress.
  Clock::time_point last_progress(std::size_t rank) const { return ranks_[rank].progress; }

 private:
  struct Rank {
    Heartbeat heartbeat;
    Clock::time_point sign_of_life;
    Clock::time_point progress;
    bool gone = false;
  };
  std::vector<Rank> ranks_;
};

}  // namespace accrue
