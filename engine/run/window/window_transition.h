// SPDX-License-Identifier: Apache-2.0
// Rules by which a position moves through a shape. advance() implements the knobs K1 to K4, K7, K8 and K13. Planned
// runs, caller-driven loops, previews and walks all move by it, so they cannot disagree.
#pragma once

#include <limits>

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// More micro-steps than any run has.
inline constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max() / 4;

/// Transition on a borrowed shape and position; it moves the position.
class WindowTransition {
 public:
  WindowTransition(const WindowShape& shape, WindowPosition& at) : shape_(shape), at_(at) {}

  /// Performs one micro-step of a planned run; none if the run is over. The caller fills in window size and division.
  /// Adds the skipped batches to `dropped`.
  std::optional<MicroPlan> advance(std::int64_t& dropped);
  /// Performs the first half of it: the window is not yet closed, and the schedule has not moved.
  std::optional<MicroPlan> begin(std::int64_t& dropped);
  /// Closes the window that the micro-step ended.
  void close_window(const MicroPlan& micro);
  /// Calls the schedule once. Returns the inner steps that it takes.
  std::int64_t move_schedule(bool epoch_ends, std::int64_t steps);
  /// Moves to the next batch that is trained on; false if the run is over.
  bool find_batch(std::int64_t& dropped);

  /// N of the length schedule now (K1).
  std::int64_t scheduled_steps() const;
  /// N that the boundary test compares with: if K7 is plan, N at the window's opening, else the current N.
  std::int64_t compared_steps() const;
  /// L of the current epoch; no_end for a stream whose end is not announced.
  std::int64_t length_of_epoch() const;
  /// The count that is compared with max_iters: a counter that is never reset equals the run's micro-step, unless it
  /// was set explicitly (a count restored from a resumed iteration).
  std::int64_t iteration() const;
  /// Inner steps after K13's guard on total.
  std::int64_t guarded_ticks(std::int64_t ticks) const;

 private:
  bool limit_reached() const;
  void begin_next_epoch();
  std::int64_t epochs_of_same_steps() const;
  bool is_full(std::int64_t steps) const;
  bool is_last_batch(bool update) const;
  bool ends_run(const MicroPlan& micro) const;
  BoundaryReason boundary_reason(const MicroPlan& micro, bool full) const;
  std::int64_t schedule_ticks(bool epoch_ends, std::int64_t steps) const;

  const WindowShape& shape_;
  WindowPosition& at_;
};

/// K7: the boundary test takes the counter modulo N, and full windows do not reset it.
inline bool counts_modulo(const WindowShape& shape) {
  return shape.knobs.boundary_compare == BoundaryCompare::modulo;
}

/// N that was set by hand after `updates` updates; the last such entry counts.
std::optional<std::int64_t> steps_set_after(const WindowShape& shape, std::int64_t updates);

}  // namespace accrue
