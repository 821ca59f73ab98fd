// SPDX-License-Identifier: GPL-3.0-or-later
// RankStatus: how far each rank is in its open window, from the run's events. What the window dock draws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"

namespace accrue::ui {

struct RankStatus {
  GridCoordinate at;
  std::string device;
  std::string backend;
  std::string phase;               ///< of the last heartbeat
  std::int64_t micro_step = 0;     ///< last completed
  std::int64_t window = 0;         ///< number of the update that its last micro-step belongs to; 0 = not known
  std::int64_t filled = 0;         ///< micro-steps done in that window
  std::int64_t window_size = 0;    ///< 0 = not known
  std::int64_t window_tokens = 0;  ///< items counted in the window so far
  std::int64_t last_sync_update = -1;
  std::int64_t last_sync_bytes = 0;  ///< payload of the newest window's collectives over the data axis
  bool lost = false;
};

/// Fed in batches; a value.
class RankTracker {
 public:
  RankTracker() = default;
  explicit RankTracker(const RunPlan& plan);

  void take(const std::vector<RunEvent>& events);
  const std::map<std::int64_t, RankStatus>& ranks() const { return ranks_; }
  /// The backend the ranks said they use; empty before they are ready.
  std::string backend() const;
  /// The newest window that any rank has trained in, as the number of its update; 0 before the first micro-step.
  std::int64_t window() const;
  /// All ranks as that window sees them: empty where a rank has not begun it.
  std::map<std::int64_t, RankStatus> inWindow() const;

 private:
  struct Walker {
    AccumulationWindow window;
    MicroPlan at;
  };
  void takeMicroSteps(std::int64_t rank, const MicroSteps& steps);
  void takeSync(std::int64_t rank, const Sync& sync);
  void placeInWindow(std::int64_t rank, RankStatus& status);

  std::optional<WindowShape> shape_;
  std::map<std::int64_t, Walker> walkers_;
  std::map<std::int64_t, RankStatus> ranks_;
};

}  // namespace accrue::ui
