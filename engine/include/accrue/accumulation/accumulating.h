// SPDX-License-Identifier: Apache-2.0
// What the systems that count backwards share: an optimizer over an AccumulationDriver and a scheduler that asks its
// window; neither holds a number. The systems differ by the window's preset and by the names they give these methods.
// Made together they share one window, so that they cannot drift apart. Made one by one, each with its N, they count
// separately, as the originals do: that is how a run of an original whose counts drifted is reproduced. Thread: the
// training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/accumulation/any_optimizer.h"
#include "accrue/run/accumulation_knobs.h"

namespace accrue {

/// Defects of the original that a wrapper reproduces on purpose, so that one of its runs can be compared. None unless
/// named; the wrapper that has one says what it does.
using Replays = std::vector<Replay>;

/// Errors: throws std::invalid_argument, beginning with `what`, for a number of micro-steps per update below 1 or above
/// most_steps.
inline constexpr std::int64_t most_steps = max_window_steps;
void check_steps(std::int64_t steps, const std::string& what);

/// The system's preset for windows of N = `steps`, without a limit and of unknown length. Errors: as check_steps(), and
/// throws std::invalid_argument where the system does not have one of the defects.
WindowShape system_shape(Dialect dialect, std::int64_t steps, const std::string& what, const Replays& replay = {});

/// A window with the system's preset for a loop that belongs to the caller: without a limit and without a length, so
/// that the caller alone knows of epochs. Replay::narrow_no_sync reduces in every micro-step, as an original does whose
/// no_sync begins after the forward: the same weights for N times the traffic. Errors: throws std::invalid_argument,
/// beginning with `who`, where steps < 1 or the system does not have one of the defects.
SharedWindow make_call_window(Dialect dialect, std::int64_t steps, const std::string& who, const Replays& replay = {});

/// N of a wrapper that counts for itself, or the window that it shares with others.
class StepsOrWindow {
 public:
  StepsOrWindow(std::int64_t steps) : steps_(steps) {}
  StepsOrWindow(SharedWindow window) : window_(std::move(window)) {}
  bool counts_for_itself() const { return steps_.has_value(); }
  /// Errors: as make_call_window(); throws std::invalid_argument where the window is empty.
  SharedWindow window(Dialect dialect, const std::string& who, const Replays& replay = {}) const;

 private:
  std::optional<std::int64_t> steps_;
  SharedWindow window_;
};

/// backward() counts and divides, step() and zero_grad() act only where the window says so.
class AccumulatingOptimizer : public OptimizerWrapper {
 public:
  /// loss / N, and its gradient added. Within a window nothing is reduced; after the window's last backward the model's
  /// gradients are reduced and waited for: collective then, on the model's axis. Errors: throws std::logic_error,
  /// before anything is counted, where it has to reduce and a no_sync scope is open; and on all ranks, at the next
  /// reduction, std::invalid_argument where they differ in N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// The inner step, where the window's update is due; else accumulated. The window is closed before the inner step.
  StepOutcome step(const Closure& closure = {}) override;
  /// Forwarded only where no gradient is pending: before a window and after its step. Else nothing happens.
  void zero_grad(bool set_to_none = true) override;

  /// The inner state, and the window's position under "window.". The gradients of an open window are not part of it.
  StateDict state_dict() const override;
  /// Continues at the micro-step of the window where the state was taken. The state of a plain optimizer leaves the
  /// window where it is, as the originals' do. Errors: as BaseOptimizer's, and for a state taken after N or more
  /// micro-steps of a longer window, because that window could never end here.
  void load_state_dict(const StateDict& state) override;

  /// "NAME: 2 of 4 micro-steps done", and what it wraps.
  std::string text() const override;
  const AccumulationWindow& window() const { return driver_.window(); }
  const SharedWindow& shared_window() const { return driver_.shared_window(); }

 protected:
  AccumulatingOptimizer(const AnyOptimizer& optimizer, GradSync* model, SharedWindow window);
  /// What the system calls it.
  virtual const char* name() const = 0;
  /// Counts one micro-step and runs its backward as the window plans it.
  void micro_step(const std::function<void(const MicroPlan&)>& backward);
  AccumulationDriver& driver() { return driver_; }

 private:
  AccumulationDriver driver_;
};

/// step() takes as many inner steps as the window answers: one at every N-th call. Warns, as torch does, where the
/// first of them comes before the first step of the optimizer that shares the window.
class AccumulatingScheduler : public SchedulerWrapper {
 public:
  void step(std::optional<std::int64_t> epoch = std::nullopt) override;

  /// The inner state, and the window's position under "window.", of which only the schedule's half is taken back: the
  /// rest belongs to the optimizer. The state of a plain schedule leaves the window where it is.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

  /// "NAME: one step per window of 4", and what it wraps.
  std::string text() const override;
  const AccumulationWindow& window() const { return *window_; }

 protected:
  /// What the system calls it.
  virtual const char* name() const = 0;
  AccumulatingScheduler(const AnyScheduler& scheduler, SharedWindow window);
  virtual void step_inner(std::optional<std::int64_t> epoch) { inner().step(epoch); }

 private:
  SharedWindow window_;
  bool warned_ = false;  ///< has warned, or has seen the optimizer step first
};

}  // namespace accrue
