// SPDX-License-Identifier: Apache-2.0
// Passing over a plan without looking at each of its micro-steps. A walk stops where it is told to, and arrives there
// in the state that WindowTransition::advance() would have brought it to one micro-step at a time. What it passes over
// at once is what repeats: micro-steps inside a window, full windows inside an epoch, and any number of epochs that
// brought the window back to the state it was in. So a walk costs as much for a hundred million micro-steps as for a
// thousand.
#pragma once

#include "accrue/run/accumulation_window.h"

namespace accrue {

/// A count that never falls while a run goes on: micro-steps, updates, samples, moves of the schedule.
struct WalkClock {
  std::int64_t per_micro_step = 0;
  std::int64_t per_update = 0;
  std::int64_t per_sample = 0;
  std::int64_t per_tick = 0;
};

/// What each repetition adds to a position and to the counts beside it.
struct WalkStride;

class WindowWalk {
 public:
  /// The shape must outlive this.
  explicit WindowWalk(const WindowShape& shape, const WindowPosition& from = {}) : shape_(shape), at_(from) {}

  /// Each moves on by one micro-step at least and stops after the first of which the answer is yes. False where the run
  /// ends before, or where it goes on forever without coming there.
  bool to(const WalkClock& clock, std::int64_t target);  ///< has the clock reached the target?
  bool to_epoch_end();                                   ///< does it end an epoch?
  /// To the end of the run, or as far as it takes to see that it has none.
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

/// How many micro-steps the window that is open or opens at `at` will have: up to its update, or to the end of the run.
std::int64_t size_of_window(const WindowShape& shape, const WindowPosition& at);

}  // namespace accrue
