// SPDX-License-Identifier: GPL-3.0-or-later
// RankStatus: progress of each rank in its open window, and the micro-steps in its gradients, from the run's events.
// The window dock draws it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/events/run_event.h"
#include "accrue/run/plan/run_plan.h"

namespace accrue::ui {

/// A micro-batch's share of a rank's gradients; with more micro-steps than slots, several share one.
struct PoolSlot {
  std::int64_t tokens = 0;
  std::int64_t micro_steps = 0;
  double norm = 0.0;  ///< norm of the rank's sum after it, if the run was held there; 0: unknown
  bool operator==(const PoolSlot&) const = default;
};

struct RankStatus {
  GridCoordinate at;
  std::string device;
  std::string backend;
  std::string phase;               ///< of the last heartbeat
  std::int64_t micro_step = 0;     ///< last completed
  std::int64_t window = 0;         ///< number of the update of its last micro-step; 0: unknown
  std::int64_t filled = 0;         ///< completed micro-steps of that window
  std::int64_t window_size = 0;    ///< 0: unknown
  std::int64_t window_tokens = 0;  ///< items of the window so far
  std::int64_t last_sync_update = -1;
  std::int64_t last_sync_bytes = 0;  ///< payload of the newest reductions of gradients over the data axis
  bool lost = false;
  bool has_loss = true;  ///< it reports its micro-steps itself; else it follows the reporting rank of its replica
  std::vector<PoolSlot> slots;  ///< of the window, by position
  std::int64_t carried = 0;     ///< micro-steps of the window from an earlier epoch
  std::int64_t epoch = 0;       ///< of the last micro-step, from 0
  std::int64_t reduced_at = 0;  ///< micro-step of the last reduction; may arrive before the micro-step's own event
  double sum_norm = 0.0;        ///< of its gradients at the last hold; 0: unknown
  double factor = 0.0;          ///< factor of the sum in the update, if it was held after unscale; 0: unknown
  double clip = 0.0;            ///< clip factor, if it was held after clip; 0: unknown, or nothing to clip
  /// Whether the gradients after its last micro-step were reduced: this rank holds the same sum as all others.
  bool isReduced() const { return filled > 0 && reduced_at == micro_step; }
};

bool allReduced(const std::map<std::int64_t, RankStatus>& ranks);

/// End of the newest window.
struct WindowEnd {
  std::int64_t update = 0;
  std::int64_t micro_step = 0;   ///< its last micro-step
  std::int64_t micro_steps = 0;  ///< number of its micro-steps; 0: unknown
  std::int64_t planned = 0;      ///< micro-steps of a full window
  StepOutcome outcome = StepOutcome::updated;
  std::string reason;  ///< full, epoch_end, run_end
  std::optional<double> grad_norm;
  std::int64_t dropped_batches = 0;  ///< batches of its epoch after it that are never trained on
  std::int64_t epoch = 0;            ///< from 0
};

/// A value that takes events in batches.
class RankTracker {
 public:
  RankTracker() = default;
  explicit RankTracker(const RunPlan& plan);

  void take(const std::vector<RunEvent>& events);
  const std::map<std::int64_t, RankStatus>& ranks() const { return ranks_; }
  /// Backend of the ranks; empty before they are ready.
  std::string backend() const;
  /// Number of the update of the newest window in which any rank has trained; 0 before the first micro-step.
  std::int64_t window() const;
  /// End of the newest complete window; none before the first update.
  const std::optional<WindowEnd>& lastEnd() const { return last_end_; }
  /// Whether the newest window has ended and none has begun since.
  bool drained() const;
  /// Maximum number of slots in a rank's pool.
  static constexpr std::int64_t most_slots = 64;
  /// Returns all ranks' states within that window; empty for a rank that has not begun it. If the window is known to
  /// have ended, a rank's unreported last micro-steps count as done.
  std::map<std::int64_t, RankStatus> inWindow() const;
  /// Returns the states at one moment: after the newest micro-step that every remaining rank has reported.
  std::map<std::int64_t, RankStatus> atOneMoment() const;

 private:
  void takeUpdate(const Update& update);
  void fillSlot(RankStatus& status, std::int64_t tokens) const;
  void takeMicroSteps(std::int64_t rank, const MicroSteps& steps);
  void takeMicroSteps(RankStatus& status, const MicroSteps& steps) const;
  /// Determines the reporting ranks: tensor rank 0 of the last stage.
  void placeRanks();
  void takeSync(std::int64_t rank, const Sync& sync);
  void takeHeld(std::int64_t rank, const Held& held);

  bool reduces_ = true;  ///< ranks reduce their gradients
  std::map<std::int64_t, RankStatus> ranks_;
  std::optional<WindowEnd> last_end_;
};

}  // namespace accrue::ui
