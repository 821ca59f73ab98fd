// SPDX-License-Identifier: Apache-2.0
// Fast walks over a plan. A walk stops at a given point, in the same state as WindowTransition::advance() would reach
// one micro-step at a time. It skips repetitions at once: micro-steps inside a window, full windows inside an epoch,
// and epochs that bring the window back to the same state. So a walk of a hundred million micro-steps costs as much as
// one of a thousand.
#pragma once

#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// A count that never decreases during a run: micro-steps, updates, samples or schedule steps.
struct WalkClock {
  std::int64_t per_micro_step = 0;
  std::int64_t per_update = 0;
  std::int64_t per_sample = 0;
  std::int64_t per_tick = 0;
};

/// Increase of a position and of its counts per repetition.
struct WalkStride;

class WindowWalk {
 public:
  /// The shape must outlive the walk.
  explicit WindowWalk(const WindowShape& shape, const WindowPosition& from = {}) : shape_(shape), at_(from) {}

  /// Each function advances by at least one micro-step, and stops after the first one for which the answer is yes.
  /// Returns false if the run ends before, or continues forever without reaching it.
  bool to(const WalkClock& clock, std::int64_t target);  ///< has the clock reached the target?
  bool to_epoch_end();                                   ///< does it end an epoch?
  /// Walks to the end of the run, or until it is clear that there is none.
  void to_end();

  const WindowPosition& at() const { return at_; }
  std::int64_t dropped_batches() const { return dropped_; }
  std::int64_t last_epoch() const { return last_epoch_; }  ///< of the last micro-step; -1 before the first
  std::int64_t count(const WalkClock& clock) const;

 private:
  struct Goal {
    WalkClock clock;
    std::int64_t target = no_target;
    bool epoch_end = false;
  };
  static constexpr std::int64_t no_target = -1;

  bool walk(const Goal& goal);
  bool reached(const Goal& goal, const MicroPlan& micro) const;
  WalkStride laps_of_epoch(const WalkStride& one, std::int64_t length, std::int64_t most) const;
  WalkStride inside_window();
  WalkStride full_window();
  WalkStride since(const WindowWalk& earlier) const;
  std::int64_t repeats(const WindowWalk& earlier);
  std::optional<std::int64_t> take_again(const WindowWalk& earlier, const Goal& goal);
  bool guard_is_used_up() const;
  std::int64_t repetitions(const WalkStride& stride, const Goal& goal);
  void take(const WalkStride& stride, std::int64_t times);

  const WindowShape& shape_;
  WindowPosition at_;
  std::int64_t dropped_ = 0;
  std::int64_t last_epoch_ = -1;
};

/// Micro-steps of the window that is open or opens at `at`, up to its update or the end of the run.
std::int64_t size_of_window(const WindowShape& shape, const WindowPosition& at);

}  // namespace accrue
