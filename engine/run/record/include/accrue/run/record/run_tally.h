// SPDX-License-Identifier: Apache-2.0
// RunTally: totals over all events of a run, for its summary.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/events/run_event.h"

namespace accrue {

class RunTally {
 public:
  RunTally() = default;
  /// Continues from earlier totals of the run.
  RunTally(double paused_seconds, std::optional<ExactnessCheck> worst_check, double loss = 0.0);

  void take(const RunEvent& event);
  /// Seconds during which the run was held, within the newest update's "seconds".
  double paused_seconds() const { return paused_seconds_; }
  /// Loss of the newest update with a labelled item; 0 before the first.
  double loss() const { return loss_; }
  /// The deciding check; nullopt before the first.
  const std::optional<ExactnessCheck>& worst_check() const { return worst_; }

 private:
  std::optional<std::int64_t> paused_since_ns_;
  double since_update_ = 0.0;  ///< held since the newest update
  double paused_seconds_ = 0.0;
  double loss_ = 0.0;
  std::optional<ExactnessCheck> worst_;
};

}  // namespace accrue
