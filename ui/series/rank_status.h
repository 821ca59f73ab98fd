// SPDX-License-Identifier: GPL-3.0-or-later
// RankStatus: how far each rank is in its open window, and which micro-steps its gradients hold, from the run's events.
// The window dock draws it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/run_event.h"
#include "accrue/run/run_plan.h"

namespace accrue::ui {

/// A micro-batch's share of a rank's gradients; if a window has more micro-steps than slots, several share one.
struct PoolSlot {
  std::int64_t tokens = 0;
  std::int64_t micro_steps = 0;
  double norm = 0.0;  ///< of the rank's sum after it, where the run was held there; 0 = not known
  bool operator==(const PoolSlot&) const = default;
};

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
  std::int64_t last_sync_bytes = 0;  ///< payload of the newest reductions of gradients over the data axis
  bool lost = false;
  bool has_loss = true;  ///< it reports its micro-steps itself; else it follows the rank of its replica that does
  std::vector<PoolSlot> slots;  ///< of the window, by position
  std::int64_t carried = 0;     ///< micro-steps of the window from an earlier epoch
  std::int64_t epoch = 0;       ///< of the last micro-step, from 0
  std::int64_t reduced_at = 0;  ///< micro-step of the last reduction; may arrive before the micro-step's own event
  double sum_norm = 0.0;        ///< of its gradients where it was last held; 0 = not known
  double factor = 0.0;  ///< what the update multiplies the sum by, once it was held after unscale; 0 = not known
  double clip = 0.0;    ///< and by this, once it was held after clip; 0 = not known, or nothing to clip
  /// The gradients after its last micro-step have been reduced: this rank holds the same sum as every other.
  bool isReduced() const { return filled > 0 && reduced_at == micro_step; }
};

bool allReduced(const std::map<std::int64_t, RankStatus>& ranks);

/// How the newest window ended.
struct WindowEnd {
  std::int64_t update = 0;
  std::int64_t micro_step = 0;   ///< its last
  std::int64_t micro_steps = 0;  ///< how many it had; 0 = not known
  std::int64_t planned = 0;      ///< of a full one
  StepOutcome outcome = StepOutcome::updated;
  std::string reason;  ///< full, epoch_end, run_end
  std::optional<double> grad_norm;
  std::int64_t dropped_batches = 0;  ///< batches of its epoch after it that are never trained on
  std::int64_t epoch = 0;            ///< from 0
};

/// Fed in batches; a value.
class RankTracker {
 public:
  RankTracker() = default;
  explicit RankTracker(const RunPlan& plan);

  void take(const std::vector<RunEvent>& events);
  const std::map<std::int64_t, RankStatus>& ranks() const { return ranks_; }
  /// The backend that the ranks use; empty before they are ready.
  std::string backend() const;
  /// The newest window that any rank has trained in, as the number of its update; 0 before the first micro-step.
  std::int64_t window() const;
  /// How the newest complete window ended; empty before the first update.
  const std::optional<WindowEnd>& lastEnd() const { return last_end_; }
  /// The newest window has ended, and none has begun since.
  bool drained() const;
  /// The most slots that a rank's pool shows.
  static constexpr std::int64_t most_slots = 64;
  /// All ranks' state within that window: empty for a rank that has not begun it. Where the window is known to have
  /// ended, a rank whose last micro-steps have not been reported has done them all the same.
  std::map<std::int64_t, RankStatus> inWindow() const;
  /// The same at one moment: after the newest micro-step that every rank which is not lost has reported.
  std::map<std::int64_t, RankStatus> atOneMoment() const;

 private:
  void takeUpdate(const Update& update);
  void fillSlot(RankStatus& status, std::int64_t tokens) const;
  void takeMicroSteps(std::int64_t rank, const MicroSteps& steps);
  void takeMicroSteps(RankStatus& status, const MicroSteps& steps) const;
  /// Who reports: tensor rank 0 of the last stage.
  void placeRanks();
  void takeSync(std::int64_t rank, const Sync& sync);
  void takeHeld(std::int64_t rank, const Held& held);

  bool reduces_ = true;  ///< ranks reduce their gradients at all
  std::map<std::int64_t, RankStatus> ranks_;
  std::optional<WindowEnd> last_end_;
};

}  // namespace accrue::ui
