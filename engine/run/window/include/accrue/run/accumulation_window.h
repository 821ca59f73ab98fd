// SPDX-License-Identifier: Apache-2.0
// AccumulationWindow: the only counter. Before each forward it answers, for one micro-step, everything any stage of
// training asks: divisor, whether gradients are reduced, whether the optimizer steps, why, and where the schedule
// stands. Optimizer, schedule, clip, clearing, no-sync, logger, checkpoint, preview, "trace" and the form's arithmetic
// line read its MicroPlan and count nothing themselves. It is a value: copyable, seekable, the same on every rank,
// without a clock or random numbers.
//
// Two ways to drive it. A planned run asks next() for one micro-step after another. A loop that belongs to the
// caller (under the classes of the four other systems) reports what happens, in its own order: count() as a micro-step
// begins, take_boundary() as the optimizer steps, call_schedule() as the scheduler's step is called. Both run the same
// transitions; next() is the three of them in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/accumulation_knobs.h"
#include "accrue/run/batch_size.h"

namespace accrue {

enum class BoundaryReason { none, full, epoch_end, run_end };
/// "" for none, else "full", "epoch_end", "run_end".
std::string_view to_string(BoundaryReason reason);

/// What became of a boundary, or of a step that was called off a boundary (accumulated): an enum, never a silent skip.
enum class StepOutcome { updated, skipped_overflow, skipped_empty, accumulated };
std::string_view to_string(StepOutcome outcome);

/// What the loss of a micro-step, or the sum over its window, is divided by (K5), and when (K6). Whatever
/// divides, or shows what it is divided by, reads this.
struct Division {
  enum class By { number, samples, items, none };
  By by = By::number;
  double value = 1.0;  ///< the number; 1 where none divides or a count does, which only the data know
  NormalizeWhen when = NormalizeWhen::eager;
  /// What divides, where that is known before any data are: a number, and 1 for none.
  std::optional<double> number() const;
  /// Samples or items divide, which are counted as they come.
  bool counts() const { return by == By::samples || by == By::items; }
  bool operator==(const Division&) const = default;
};

/// The plan of one micro-step.
struct MicroPlan {
  std::int64_t micro_step = 0;   ///< from 1 over the whole run
  std::int64_t epoch = 0;        ///< from 0
  std::int64_t batch = 0;        ///< in the epoch, from 0
  std::int64_t window = 0;       ///< index of the window (of the update it ends in), from 0
  std::int64_t position = 0;     ///< in the window, from 0
  std::int64_t window_size = 0;  ///< micro-steps this window will have; for a window that never closes, those it gets
  std::int64_t steps = 0;        ///< N, as the boundary test after this micro-step compares with it
  Division division;             ///< of this micro-step's loss; at a boundary, also of the window's sum
  bool sync = false;             ///< gradients are meant to be reduced in this backward
  bool update = false;           ///< the optimizer steps after it
  BoundaryReason reason = BoundaryReason::none;
  std::int64_t schedule_ticks = 0;     ///< inner schedule steps taken after this micro-step
  std::int64_t schedule_position = 0;  ///< after this micro-step, before overflow is known
  std::int64_t samples_before = 0;     ///< of the updates done before this window; skipped ones do not count
  bool epoch_ends = false;             ///< last trained batch of its epoch
  std::int64_t dropped_after = 0;      ///< batches of its epoch, after it, that are never trained on (K2 drop_*)
  bool operator==(const MicroPlan&) const = default;
};

/// L of a stream: the epoch ends when announce_end() says so.
inline constexpr std::int64_t unknown_length = -1;

/// Samples over all ranks: of a batch, and of an epoch's last. 0 where nobody counts them.
struct BatchSamples {
  std::int64_t each = 0;
  std::int64_t last = 0;
  bool operator==(const BatchSamples&) const = default;
};

/// What a plan depends on. All of it is agreed by the ranks before data flows.
struct WindowShape {
  AccumulationKnobs knobs;
  std::int64_t steps = 1;  ///< N
  std::vector<LengthChange> length_schedule;
  BatchSamples samples;
  std::optional<RampUp> rampup;  ///< a window's length follows from the samples of the windows before it
  std::vector<LengthChange>
      steps_set;  ///< N set by hand while the run ran, after that many updates: before any schedule
  std::int64_t batches_per_epoch = 0;  ///< L, equal on all ranks; or unknown_length
  std::int64_t world = 1;              ///< data-parallel ranks
  bool schedule_in_samples = false;    ///< an update moves the schedule by its samples, unless it is skipped
  // The run ends at the first limit that is set and reached; at least one is.
  std::optional<std::int64_t> max_epochs;
  std::optional<std::int64_t> max_updates;
  std::optional<std::int64_t> max_micro_steps;
  std::optional<std::int64_t> schedule_total;  ///< K13's guard on total
  std::optional<std::int64_t> max_iters;       ///< mmengine's max_counts; the whole run's micro-steps if it is left out

  /// N was changed after that many updates. A new change replaces those recorded there or later; one that a resumed run
  /// repeats keeps the later ones.
  void set_steps_after(std::int64_t updates, std::int64_t set, bool repeated = false);
  /// The run went back to that update: later changes are reported again when they take effect again.
  void forget_steps_after(std::int64_t updates);
  /// N of the last change, or the spec's where there was none.
  std::int64_t steps_now() const { return steps_set.empty() ? steps : steps_set.back().steps; }
  bool operator==(const WindowShape&) const = default;
};

/// Where a window stands between two micro-steps; saved in checkpoints. Only a window changes it; for_each_field()
/// serialises it.
class WindowPosition {
 public:
  std::int64_t micro_step() const { return micro_step_; }  ///< done
  std::int64_t epoch() const { return epoch_; }
  std::int64_t batch() const { return batch_; }            ///< next batch of the epoch
  std::int64_t updates() const { return updates_; }        ///< boundaries passed
  std::int64_t position() const { return position_; }      ///< micro-steps in the open window
  std::int64_t counter() const { return counter_; }        ///< what the boundary test compares with N (K4, K7)
  std::int64_t steps() const { return steps_; }            ///< N of the open window
  std::int64_t next_steps() const { return next_steps_; }  ///< N as set at run time; 0 = the shape's
  std::int64_t schedule_position() const { return schedule_position_; }
  std::int64_t epoch_length() const { return epoch_length_; }  ///< L of this epoch of a stream; 0 = not announced
  /// Over all ranks; 0 where the shape counts none.
  std::int64_t samples() const { return samples_ + (position_ > 0 ? window_samples_ : 0); }
  std::int64_t passed_samples() const { return samples_; }           ///< of the windows passed
  std::int64_t skipped_samples() const { return skipped_samples_; }  ///< of those whose update was skipped
  bool at_boundary() const { return at_boundary_; }  ///< the last micro-step ended its window, or was due to
  /// The same place under the N that another position was given at run time.
  WindowPosition with_steps_of(const WindowPosition& other) const;
  /// The same place with another position's schedule.
  WindowPosition with_schedule_of(const WindowPosition& other) const;
  bool operator==(const WindowPosition&) const = default;

 private:
  friend class AccumulationWindow;
  friend class WindowTransition;
  friend class WindowWalk;
  template <typename Position, typename Visit>
  friend void for_each_field(Position& at, Visit&& visit);

  std::int64_t micro_step_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t position_ = 0;
  std::int64_t counter_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t next_steps_ = 0;
  std::int64_t schedule_position_ = 0;
  std::int64_t schedule_calls_ = 0;  ///< calls since the last tick (K13 every_nth_call)
  std::int64_t guard_count_ = 0;     ///< what K13's guard on total reads
  std::int64_t epoch_length_ = 0;
  std::int64_t samples_ = 0;          ///< of the windows passed
  std::int64_t window_samples_ = 0;   ///< of the open window; between two windows, of the last
  std::int64_t skipped_samples_ = 0;  ///< of windows whose update was skipped
  bool at_boundary_ = false;
};

/// Calls visit(name, member) for every field of a position: what checkpoints and state dictionaries hold of it.
template <typename Position, typename Visit>
void for_each_field(Position& at, Visit&& visit) {
  visit("micro_step", at.micro_step_);
  visit("epoch", at.epoch_);
  visit("batch", at.batch_);
  visit("updates", at.updates_);
  visit("position", at.position_);
  visit("counter", at.counter_);
  visit("steps", at.steps_);
  visit("next_steps", at.next_steps_);
  visit("schedule_position", at.schedule_position_);
  visit("schedule_calls", at.schedule_calls_);
  visit("guard_count", at.guard_count_);
  visit("epoch_length", at.epoch_length_);
  visit("samples", at.samples_);
  visit("window_samples", at.window_samples_);
  visit("skipped_samples", at.skipped_samples_);
  visit("at_boundary", at.at_boundary_);
}

/// A schedule that follows a window beside others: where it stands, and where it ends.
struct FollowingSchedule {
  std::int64_t position = 0;          ///< inner steps taken
  std::int64_t guard_count = 0;       ///< what K13's guard on total reads: these, those taken elsewhere, and bumps
  std::optional<std::int64_t> total;  ///< K13's guard on total
};

class AccumulationWindow {
 public:
  explicit AccumulationWindow(WindowShape shape);

  /// The next micro-step's plan, or nothing when the run is over. Batches the dialect never trains on are passed over.
  std::optional<MicroPlan> next();
  /// What next() or count() would answer, without moving.
  std::optional<MicroPlan> peek() const;

  /// Of a stream: the epoch of the next micro-step ends after that many more (0 or more). A reader that looks one
  /// window ahead says so before the window begins, which makes its planned size exact from its first micro-step; said
  /// inside a window, it corrects the size from the next micro-step on. The ranks agree on the least of their numbers.
  void announce_end(std::int64_t remaining);

  /// Call-driven: a micro-step begins. Where K7 is exact or at_least the window stays open until take_boundary(); what
  /// follows a counter that runs past N depends on the system (exact: there is never a boundary again). Throws
  /// std::logic_error where a limit of the shape says that the run is over.
  MicroPlan count();
  /// Call-driven: the last counted micro-step ends its window, and no boundary has been taken since.
  bool boundary_due() const;
  /// Call-driven: the optimizer steps. False, and nothing happens, off a boundary.
  bool take_boundary();
  /// Call-driven: the scheduler's step is called once; how many inner steps it takes (K13, K12).
  std::int64_t call_schedule();
  /// The same for one of several schedules, each of which knows how far it is. `skipped`: the last
  /// micro-step was a boundary, and one of this schedule's optimizers skipped its update. The window stays as it is.
  std::int64_t call_schedule(FollowingSchedule& schedule, bool skipped) const;

  /// Passes over the micro-steps up to that many updates from now, as if next() had been called for each of them, or to
  /// the end of the run.
  void pass_updates(std::int64_t updates);

  /// Tells what became of the boundary that next() or count() answered last; holds or advances the schedule by K12, and
  /// a schedule in samples always holds. Not calling it means updated.
  void report(StepOutcome outcome);
  /// N from now on: the open window keeps its length where K7 is plan, else the new N is compared at once.
  void set_steps(std::int64_t steps);
  /// set_steps() between two windows of a planned run, kept in shape() in the place of what was set for later.
  void change_steps(std::int64_t steps);
  /// N that shape().steps_set sets at the boundary just passed.
  std::optional<std::int64_t> steps_set_here() const;
  /// Continues just after micro-step m, as if next() had been called m times; schedule_position where overflows moved
  /// it.
  void seek(std::int64_t micro_step, std::optional<std::int64_t> schedule_position = std::nullopt);

  const WindowPosition& position() const { return at_; }
  /// Continues from a position that this window or one of the same shape had. Those below change a part of it and leave
  /// the rest: nothing else edits a position.
  void restore(const WindowPosition& position);
  /// N of a position's open window, if that is past its end and can never close; nothing where it closes or the run's N
  /// may have changed on the way.
  std::optional<std::int64_t> missed_end(const WindowPosition& position) const;
  /// restore(), but for the schedule's part: an optimizer's state says nothing about its schedule.
  void restore_counts(const WindowPosition& position);
  /// The schedule's part alone.
  void restore_schedule(const WindowPosition& position);
  /// The gradients of the open window are lost: the next micro-step opens a window. With `recount`, what the boundary
  /// test compares starts from 0 as well; else the next window is shorter by what was lost.
  void lose_open_window(bool recount);
  /// The scheduler's calls since its last tick are forgotten (K13 every_nth_call).
  void forget_schedule_calls();
  /// Whether the next take_boundary() and call_schedule() are at a boundary, regardless of the count.
  void force_boundary(bool due);
  /// Continues after that many micro-steps which another program did: their gradients are gone, so no window is open,
  /// and the count stands where theirs did (mmengine's initialize_count_status).
  void resume_at(std::int64_t micro_step);

  const WindowShape& shape() const { return shape_; }
  std::int64_t micro_steps_done() const { return at_.micro_step_; }
  std::int64_t updates_done() const { return at_.updates_; }
  /// Micro-steps in the open window; 0 at a boundary.
  std::int64_t open_micro_steps() const { return at_.position_; }
  std::int64_t schedule_position() const { return at_.schedule_position_; }

 private:
  std::optional<MicroPlan> move(bool planned);

  WindowShape shape_;
  WindowPosition at_;
  std::int64_t window_size_ = 0;  ///< of the open window
  std::int64_t last_ticks_ = 0;
  bool epoch_ends_ = false;  ///< of the last micro-step
  bool held_ = false;        ///< the last boundary was left out, and the schedule waits (K12)
};

/// Totals of a whole plan. What repeats is counted once, so that the longest run takes milliseconds.
struct WindowTotals {
  std::int64_t micro_steps = 0;
  std::int64_t updates = 0;
  std::int64_t epochs_started = 0;
  std::int64_t schedule_ticks = 0;
  std::int64_t samples = 0;                ///< of the updates, where the shape counts them
  std::int64_t dropped_batches = 0;        ///< passed over by K2 drop_*
  std::int64_t left_over_micro_steps = 0;  ///< still in the gradients when the run ends (K3 discard)
  bool operator==(const WindowTotals&) const = default;
};
WindowTotals total_windows(const WindowShape& shape);

/// The first `count` micro-steps of a plan, for previews.
std::vector<MicroPlan> preview_windows(const WindowShape& shape, std::int64_t count);

/// The last micro-step of the first epoch; 0 where the run ends before.
std::int64_t first_epoch_end(const WindowShape& shape);

/// One micro-step's letters, e.g. "b" or "BSLZ".
std::string micro_step_letters(Dialect dialect, const MicroPlan& micro);
/// The letters b (backward), B (backward with sync), S step, L schedule, Z zero, | epoch end, in the dialect's own loop
/// order.
std::string window_letters(Dialect dialect, const WindowShape& shape, std::int64_t max_micro_steps);

}  // namespace accrue
