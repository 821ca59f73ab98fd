// SPDX-License-Identifier: Apache-2.0
// Common part of the systems that count backwards: an optimizer over an AccumulationDriver, and a scheduler that reads
// its window; neither holds a number. The systems differ by the window's preset and by their method names. Wrappers
// that are made together share one window, so they cannot drift apart. Wrappers made separately, each with its N, count
// separately, as the originals do; this reproduces a run of an original whose counts drifted. Thread: the training
// thread.
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
#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue {

/// Defects of the original that a wrapper reproduces on purpose, for comparison with its runs. None by default; the
/// wrapper that has one documents it.
using Replays = std::vector<Replay>;

/// Errors: throws std::invalid_argument, beginning with `what`, for a number of micro-steps per update below 1 or above
/// most_steps.
inline constexpr std::int64_t most_steps = max_window_steps;
void check_steps(std::int64_t steps, const std::string& what);

/// Returns the system's preset for windows of N = `steps`, without a limit and of unknown length. Errors: as
/// check_steps(), and throws std::invalid_argument if the system lacks one of the defects.
WindowShape system_shape(Dialect dialect, std::int64_t steps, const std::string& what, const Replays& replay = {});

/// Returns a window with the system's preset for a caller's own loop: without a limit and a length, so only the caller
/// knows of epochs. Replay::narrow_no_sync reduces in every micro-step, like an original whose no_sync begins after the
/// forward: the same weights for N times the traffic. Errors: throws std::invalid_argument, beginning with `who`, if
/// steps < 1 or if the system lacks one of the defects.
SharedWindow make_call_window(Dialect dialect, std::int64_t steps, const std::string& who, const Replays& replay = {});

/// N of a wrapper with its own count, or a window that it shares with others.
class StepsOrWindow {
 public:
  StepsOrWindow(std::int64_t steps) : steps_(steps) {}
  StepsOrWindow(SharedWindow window) : window_(std::move(window)) {}
  bool counts_for_itself() const { return steps_.has_value(); }
  /// Errors: as make_call_window(); throws std::invalid_argument if the window is empty.
  SharedWindow window(Dialect dialect, const std::string& who, const Replays& replay = {}) const;

 private:
  std::optional<std::int64_t> steps_;
  SharedWindow window_;
};

/// backward() counts and divides; step() and zero_grad() act only when the window says so.
class AccumulatingOptimizer : public OptimizerWrapper {
 public:
  /// Adds the gradient of loss / N. Inside a window nothing is reduced. After the window's last backward the model's
  /// gradients are reduced and waited for: collective then, on the model's axis. Errors: throws std::logic_error,
  /// before anything is counted, if it must reduce while a no_sync scope is open; and on all ranks, at the next
  /// reduction, std::invalid_argument if they differ in N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// Does the inner step if the window's update is due; otherwise returns accumulated. The window is closed before the
  /// inner step.
  StepOutcome step(const Closure& closure = {}) override;
  /// Forwarded only if no gradient is pending: before a window and after its step. Otherwise does nothing.
  void zero_grad(bool set_to_none = true) override;

  /// Returns the inner state, and the window's position under "window.". The gradients of an open window are not part
  /// of it.
  StateDict state_dict() const override;
  /// Continues at the window's micro-step of the state. A plain optimizer's state does not move the window, as in the
  /// originals. Errors: as BaseOptimizer's, and for a state after N or more micro-steps of a longer window, because
  /// that window could never end here.
  void load_state_dict(const StateDict& state) override;

  /// Returns "NAME: 2 of 4 micro-steps done", and the wrapped object.
  std::string text() const override;
  const AccumulationWindow& window() const { return driver_.window(); }
  const SharedWindow& shared_window() const { return driver_.shared_window(); }

 protected:
  AccumulatingOptimizer(const AnyOptimizer& optimizer, GradSync* model, SharedWindow window);
  /// The system's name for it.
  virtual const char* name() const = 0;
  /// Counts one micro-step and runs its backward as the window plans it.
  void micro_step(const std::function<void(const MicroPlan&)>& backward);
  AccumulationDriver& driver() { return driver_; }

 private:
  AccumulationDriver driver_;
};

/// step() takes as many inner steps as the window says: one at every N-th call. Warns, as torch does, if the first of
/// them comes before the first step of the optimizer that shares the window.
class AccumulatingScheduler : public SchedulerWrapper {
 public:
  void step(std::optional<std::int64_t> epoch = std::nullopt) override;

  /// Returns the inner state, and the window's position under "window.". Only the schedule's half of it is restored;
  /// the rest belongs to the optimizer. A plain schedule's state does not move the window.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

  /// Returns "NAME: one step per window of 4", and the wrapped object.
  std::string text() const override;
  const AccumulationWindow& window() const { return *window_; }

 protected:
  /// The system's name for it.
  virtual const char* name() const = 0;
  AccumulatingScheduler(const AnyScheduler& scheduler, SharedWindow window);
  virtual void step_inner(std::optional<std::int64_t> epoch) { inner().step(epoch); }

 private:
  SharedWindow window_;
  bool warned_ = false;  ///< has warned, or has seen the optimizer step first
};

}  // namespace accrue
