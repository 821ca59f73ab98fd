// SPDX-License-Identifier: Apache-2.0
// RunTally: what a run's summary says of all its events and no single one of them does.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/run_event.h"

namespace accrue {

class RunTally {
 public:
  RunTally() = default;
  /// Goes on from what was known of the run before.
  RunTally(double paused_seconds, std::optional<ExactnessCheck> worst_check, double loss = 0.0);

  void take(const RunEvent& event);
  /// Of the time that the newest update's "seconds" counts, what the run was held for.
  double paused_seconds() const { return paused_seconds_; }
  /// Of the newest update that had a labelled item; 0 before the first.
  double loss() const { return loss_; }
  /// The check that decides; nullopt before the first.
  const std::optional<ExactnessCheck>& worst_check() const { return worst_; }

 private:
  std::optional<std::int64_t> paused_since_ns_;
  double since_update_ = 0.0;  ///< held since the newest update
  double paused_seconds_ = 0.0;
  double loss_ = 0.0;
  std::optional<ExactnessCheck> worst_;
};

}  // namespace accrue
