// SPDX-License-Identifier: Apache-2.0
// AccumulationWindow: the only counter. Before each forward it answers every question about one micro-step: the
// divisor, whether gradients are reduced, whether the optimizer steps and why, and the schedule position. Optimizer,
// schedule, clip, clearing, no-sync, logger, checkpoint, preview, "trace" and the form's arithmetic line read its
// MicroPlan and count nothing themselves. It is a value: copyable, seekable, the same on every rank, without a clock or
// random numbers.
//
// It can be driven in two ways. A planned run calls next() for each micro-step. A caller's own loop (under the classes
// of the four other systems) reports events in its own order: count() when a micro-step begins, take_boundary() when
// the optimizer steps, call_schedule() when the scheduler's step is called. Both run the same transitions; next() is
// the three of them in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/fields/accumulation_knobs.h"
#include "accrue/run/window/batch_size.h"

namespace accrue {

enum class BoundaryReason { none, full, epoch_end, run_end };
/// Returns "" for none, else "full", "epoch_end" or "run_end".
std::string_view to_string(BoundaryReason reason);

/// Result of a boundary, or of a step that was called off a boundary (accumulated). It is an enum, so that no step is
/// skipped silently.
enum class StepOutcome { updated, skipped_overflow, skipped_empty, accumulated };
std::string_view to_string(StepOutcome outcome);

/// Divisor of a micro-step's loss or of the sum over its window (K5), and when it applies (K6). All code that divides
/// or shows a divisor reads this.
struct Division {
  enum class By { number, samples, items, none };
  By by = By::number;
  double value = 1.0;  ///< the number; 1 if nothing divides, or if a count divides that only the data give
  NormalizeWhen when = NormalizeWhen::eager;
  /// Returns the divisor if it is known before any data are read; 1 if nothing divides.
  std::optional<double> number() const;
  /// Whether samples or items divide, which are counted as data arrive.
  bool counts() const { return by == By::samples || by == By::items; }
  bool operator==(const Division&) const = default;
};

/// Plan of one micro-step.
struct MicroPlan {
  std::int64_t micro_step = 0;   ///< from 1 over the whole run
  std::int64_t epoch = 0;        ///< from 0
  std::int64_t batch = 0;        ///< in the epoch, from 0
  std::int64_t window = 0;       ///< index of the window (of the update it ends in), from 0
  std::int64_t position = 0;     ///< in the window, from 0
  std::int64_t window_size = 0;  ///< micro-steps of this window; for a window that never closes, those it receives
  std::int64_t steps = 0;        ///< N, to which the boundary test after this micro-step compares
  Division division;             ///< of this micro-step's loss; at a boundary, also of the window's sum
  bool sync = false;             ///< gradients are meant to be reduced in this backward
  bool update = false;           ///< the optimizer steps after it
  BoundaryReason reason = BoundaryReason::none;
  std::int64_t schedule_ticks = 0;     ///< inner schedule steps taken after this micro-step
  std::int64_t schedule_position = 0;  ///< after this micro-step, before overflow is known
  std::int64_t samples_before = 0;     ///< samples of the updates done before this window, without skipped ones
  bool epoch_ends = false;             ///< last trained batch of its epoch
  std::int64_t dropped_after = 0;      ///< batches of its epoch after it that are never trained on (K2 drop_*)
  bool operator==(const MicroPlan&) const = default;
};

/// L of a stream: announce_end() tells when the epoch ends.
inline constexpr std::int64_t unknown_length = -1;

/// Samples over all ranks: of a batch, and of an epoch's last batch. 0 if they are not counted.
struct BatchSamples {
  std::int64_t each = 0;
  std::int64_t last = 0;
  bool operator==(const BatchSamples&) const = default;
};

/// Inputs of a plan. The ranks agree on all of them before any data flow.
struct WindowShape {
  AccumulationKnobs knobs;
  std::int64_t steps = 1;  ///< N
  std::vector<LengthChange> length_schedule;
  BatchSamples samples;
  std::optional<RampUp> rampup;  ///< a window's length follows from the samples of the windows before it
  std::vector<LengthChange>
      steps_set;  ///< N that was set by hand during the run, after so many updates; overrides any schedule
  std::int64_t batches_per_epoch = 0;  ///< L, equal on all ranks; or unknown_length
  std::int64_t world = 1;              ///< data-parallel ranks
  bool schedule_in_samples = false;    ///< an update advances the schedule by its samples, unless it is skipped
  // The run ends at the first limit that is reached. At least one must be set.
  std::optional<std::int64_t> max_epochs;
  std::optional<std::int64_t> max_updates;
  std::optional<std::int64_t> max_micro_steps;
  std::optional<std::int64_t> schedule_total;  ///< K13's guard on total
  std::optional<std::int64_t> max_iters;       ///< mmengine's max_counts; the whole run's micro-steps if it is left out

  /// Records that N was changed after `updates` updates. It replaces changes recorded there or later, unless it is
  /// `repeated` by a resumed run.
  void set_steps_after(std::int64_t updates, std::int64_t set, bool repeated = false);
  /// The run went back to update `updates`: later changes are reported again when they take effect again.
  void forget_steps_after(std::int64_t updates);
  /// N of the last change, or of the spec if there was none.
  std::int64_t steps_now() const { return steps_set.empty() ? steps : steps_set.back().steps; }
  bool operator==(const WindowShape&) const = default;
};

/// Position of a window between two micro-steps, as saved in checkpoints. Only a window changes it; for_each_field()
/// serialises it.
class WindowPosition {
 public:
  std::int64_t micro_step() const { return micro_step_; }  ///< done
  std::int64_t epoch() const { return epoch_; }
  std::int64_t batch() const { return batch_; }            ///< next batch of the epoch
  std::int64_t updates() const { return updates_; }        ///< boundaries passed
  std::int64_t position() const { return position_; }      ///< micro-steps in the open window
  std::int64_t counter() const { return counter_; }        ///< number that the boundary test compares with N (K4, K7)
  std::int64_t steps() const { return steps_; }            ///< N of the open window
  std::int64_t next_steps() const { return next_steps_; }  ///< N that was set at run time; 0: the shape's
  std::int64_t schedule_position() const { return schedule_position_; }
  std::int64_t epoch_length() const { return epoch_length_; }  ///< L of this epoch of a stream; 0: not announced
  /// Samples over all ranks; 0 if the shape does not count them.
  std::int64_t samples() const { return samples_ + (position_ > 0 ? window_samples_ : 0); }
  std::int64_t passed_samples() const { return samples_; }           ///< of the windows passed
  std::int64_t skipped_samples() const { return skipped_samples_; }  ///< of the windows with a skipped update
  bool at_boundary() const { return at_boundary_; }  ///< the last micro-step ended its window, or was due to
  /// Returns this position with the run-time N of another position.
  WindowPosition with_steps_of(const WindowPosition& other) const;
  /// Returns this position with another position's schedule.
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
  std::int64_t guard_count_ = 0;     ///< number that K13's guard on total reads
  std::int64_t epoch_length_ = 0;
  std::int64_t samples_ = 0;          ///< of the windows passed
  std::int64_t window_samples_ = 0;   ///< of the open window; between two windows, of the last
  std::int64_t skipped_samples_ = 0;  ///< of windows whose update was skipped
  bool at_boundary_ = false;
};

/// Calls visit(name, member) for every field of a position, for checkpoints and state dictionaries.
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

/// Position and end of an additional schedule that follows a window.
struct FollowingSchedule {
  std::int64_t position = 0;          ///< inner steps taken
  std::int64_t guard_count = 0;       ///< read by K13's guard on total: these steps, those taken elsewhere, and bumps
  std::optional<std::int64_t> total;  ///< K13's guard on total
};

class AccumulationWindow {
 public:
  explicit AccumulationWindow(WindowShape shape);

  /// Returns the plan of the next micro-step, or none at the end of the run. Skips batches that the dialect never
  /// trains on.
  std::optional<MicroPlan> next();
  /// Returns the answer of the next next() or count() call, without advancing.
  std::optional<MicroPlan> peek() const;

  /// For a stream: announces that the epoch of the next micro-step ends after `remaining` more micro-steps (0 or more).
  /// A reader that looks one window ahead announces it before the window begins, so the planned size is exact from its
  /// first micro-step. An announcement inside a window corrects the size from the next micro-step on. The ranks agree
  /// on their minimum.
  void announce_end(std::int64_t remaining);

  /// Call-driven: begins a micro-step. If K7 is exact or at_least, the window stays open until take_boundary(). The
  /// behaviour of a counter beyond N depends on the system (exact: no boundary ever again). Throws std::logic_error if
  /// a limit of the shape has ended the run.
  MicroPlan count();
  /// Call-driven: whether the last counted micro-step ended its window and no boundary was taken since.
  bool boundary_due() const;
  /// Call-driven: the optimizer steps. Off a boundary it returns false and does nothing.
  bool take_boundary();
  /// Call-driven: the scheduler's step is called once. Returns the inner steps that it takes (K13, K12).
  std::int64_t call_schedule();
  /// Does the same for one of several schedules, each with its own position. The window does not change. `skipped`: the
  /// last micro-step was a boundary, and an optimizer of this schedule skipped its update.
  std::int64_t call_schedule(FollowingSchedule& schedule, bool skipped) const;

  /// Skips the micro-steps of the next `updates` updates, as if next() had been called for each, or to the end of the
  /// run.
  void pass_updates(std::int64_t updates);

  /// Reports the outcome of the boundary that next() or count() returned last. Holds or advances the schedule by K12; a
  /// schedule in samples always holds. Without a report the outcome is updated.
  void report(StepOutcome outcome);
  /// Sets N from now on. The open window keeps its length if K7 is plan, else the new N applies at once.
  void set_steps(std::int64_t steps);
  /// Does set_steps() between two windows of a planned run, and records it in shape(), replacing later changes.
  void change_steps(std::int64_t steps);
  /// N that shape().steps_set sets at the boundary just passed.
  std::optional<std::int64_t> steps_set_here() const;
  /// Continues just after a micro-step, as if next() had been called that often. Pass schedule_position if overflows
  /// moved it.
  void seek(std::int64_t micro_step, std::optional<std::int64_t> schedule_position = std::nullopt);

  const WindowPosition& position() const { return at_; }
  /// Continues from a position of this window or of one with the same shape. The functions below change a part of the
  /// position; nothing else edits it.
  void restore(const WindowPosition& position);
  /// Returns N of the open window of a position if the window has passed its end and can never close. Returns none if
  /// it closes, or if the run's N may have changed meanwhile.
  std::optional<std::int64_t> missed_end(const WindowPosition& position) const;
  /// Does restore() without the schedule's part: an optimizer's state does not contain its schedule.
  void restore_counts(const WindowPosition& position);
  /// Restores the schedule's part alone.
  void restore_schedule(const WindowPosition& position);
  /// Discards the gradients of the open window: the next micro-step opens a window. With `recount`, the count of the
  /// boundary test restarts at 0 too; else the next window is shorter by the lost micro-steps.
  void lose_open_window(bool recount);
  /// Forgets the scheduler's calls since its last tick (K13 every_nth_call).
  void forget_schedule_calls();
  /// Decides whether the next take_boundary() and call_schedule() are at a boundary, regardless of the count.
  void force_boundary(bool due);
  /// Continues after micro-steps of another program (mmengine's initialize_count_status). Their gradients are lost, so
  /// no window is open, and the count stands at theirs.
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
  bool held_ = false;        ///< the last boundary was skipped, and the schedule waits (K12)
};

/// Totals of a whole plan. Repetitions are counted once, so the longest run takes milliseconds.
struct WindowTotals {
  std::int64_t micro_steps = 0;
  std::int64_t updates = 0;
  std::int64_t epochs_started = 0;
  std::int64_t schedule_ticks = 0;
  std::int64_t samples = 0;                ///< of the updates, if the shape counts them
  std::int64_t dropped_batches = 0;        ///< skipped by K2 drop_*
  std::int64_t left_over_micro_steps = 0;  ///< still in the gradients when the run ends (K3 discard)
  bool operator==(const WindowTotals&) const = default;
};
WindowTotals total_windows(const WindowShape& shape);

/// Returns the first `count` micro-steps of a plan, for previews.
std::vector<MicroPlan> preview_windows(const WindowShape& shape, std::int64_t count);

/// The last micro-step of the first epoch; 0 if the run ends before it.
std::int64_t first_epoch_end(const WindowShape& shape);

/// Letters of one micro-step, for example "b" or "BSLZ".
std::string micro_step_letters(Dialect dialect, const MicroPlan& micro);
/// Letters in the dialect's own loop order: b backward, B backward with sync, S step, L schedule, Z zero, | end of the
/// epoch.
std::string window_letters(Dialect dialect, const WindowShape& shape, std::int64_t max_micro_steps);

}  // namespace accrue
