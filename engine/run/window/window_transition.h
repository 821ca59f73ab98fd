// SPDX-License-Identifier: Apache-2.0
// The rules by which a position moves through a shape: everything that the knobs K1 to K4, K7, K8 and K13 say happens
// in advance(). A planned run, a loop that calls, previews and walks all move by it, so they cannot disagree.
#pragma once

#include <limits>

#include "accrue/run/accumulation_window.h"

namespace accrue {

/// More micro-steps than any run has.
inline constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max() / 4;

/// Borrows a shape and the position that it moves.
class WindowTransition {
 public:
  WindowTransition(const WindowShape& shape, WindowPosition& at) : shape_(shape), at_(at) {}

  /// One micro-step of a planned run. Nothing when the run is over. Window size and division are left to the caller.
  /// `dropped` grows by the batches that are passed over.
  std::optional<MicroPlan> advance(std::int64_t& dropped);
  /// The first half of it: the window is not closed yet and the schedule has not moved.
  std::optional<MicroPlan> begin(std::int64_t& dropped);
  /// The window that the micro-step ended is closed.
  void close_window(const MicroPlan& micro);
  /// The schedule is called once; the inner steps it takes.
  std::int64_t move_schedule(bool epoch_ends, std::int64_t steps);
  /// Moves to the next batch that is trained on. False when the run is over.
  bool find_batch(std::int64_t& dropped);

  /// N as the length schedule has it now (K1).
  std::int64_t scheduled_steps() const;
  /// N that the boundary test compares with: fixed when the window opens where K7 is plan, else whatever N is now.
  std::int64_t compared_steps() const;
  /// L of the current epoch; of a stream whose end is not announced, no_end.
  std::int64_t length_of_epoch() const;
  /// What max_iters is compared with: a counter that nothing resets is the run's micro-step, unless somebody set it
  /// otherwise (a count restored from a resumed iteration).
  std::int64_t iteration() const;
  /// Inner steps, held back by the guard on total (K13).
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

/// K7: the boundary test takes the counter modulo N, and full windows do not set it back.
inline bool counts_modulo(const WindowShape& shape) {
  return shape.knobs.boundary_compare == BoundaryCompare::modulo;
}

/// N that was set by hand after that many updates; the last such entry counts.
std::optional<std::int64_t> steps_set_after(const WindowShape& shape, std::int64_t updates);

}  // namespace accrue
