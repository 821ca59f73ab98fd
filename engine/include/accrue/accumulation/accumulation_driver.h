// SPDX-License-Identifier: Apache-2.0
// AccumulationDriver: the only accumulator. The trainer and the classes of all systems run a window through it: count,
// cover, backward, reduce, clip, step, clear, report. It holds the window, which decides, and the models whose
// gradients are reduced. Systems differ in the knobs of their windows and in the names of these calls.
//
// It can be driven in two ways, like the window. A caller's own loop counts each micro-step, and its calls are gated by
// the rules of its system (K10). A planned run calls next(), and steps and clears at boundaries by itself. Thread: the
// training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/grad_sync.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue {

using SharedWindow = std::shared_ptr<AccumulationWindow>;

/// A model whose gradients a driver reduces.
struct DrivenModel {
  explicit DrivenModel(GradSync& reducer) : sync(reducer), seen(reducer.arrivals()) {}

  /// Returns whether gradients have arrived since the last call.
  bool moved() {
    const std::int64_t before = std::exchange(seen, sync.arrivals());
    return before != seen;
  }
  /// Grows with each arriving gradient and each reduction.
  std::int64_t changes() const { return sync.arrivals() + reductions; }

  GradSync& sync;
  bool unreduced = false;  ///< it holds local gradients that the next update needs from all ranks
  std::int64_t reductions = 0;
  std::int64_t seen;  ///< arrivals at the last call of moved()
};
using DrivenModels = std::vector<std::shared_ptr<DrivenModel>>;

/// While it lives, its models do not reduce. Afterwards their previous state is restored; destroyed models are skipped.
class [[nodiscard]] Cover {
 public:
  Cover() = default;
  explicit Cover(const DrivenModels& models);
  Cover(Cover&&) noexcept = default;
  Cover& operator=(Cover&&) = delete;
  ~Cover();

 private:
  std::vector<std::pair<std::weak_ptr<DrivenModel>, bool>> before_;
};

/// K10: whether a system's own calls of step() and zero_grad() act. engine: all of them do. The others step at
/// boundaries, and clear while no micro-step is pending, or at boundaries.
enum class ClearGradients { engine, user_if_empty, user_if_boundary };

class AccumulationDriver {
 public:
  /// `gate`: for the caller's loop; a planned run steps and clears by itself. `sync`: the model, if there is one and it
  /// reduces; it must outlive this. `name_of_steps`: the system's name of N for the error about different values on the
  /// ranks; empty if they cannot differ. Errors: throws std::invalid_argument without a window.
  AccumulationDriver(SharedWindow window, ClearGradients gate, std::string name_of_steps, GradSync* sync = nullptr);

  AccumulationWindow& window() { return *window_; }
  const AccumulationWindow& window() const { return *window_; }
  const SharedWindow& shared_window() const { return window_; }
  const DrivenModels& models() const { return models_; }
  /// Replaces all models; null: none.
  void set_model(GradSync* sync);

  /// Begins a micro-step of a planned run; none if the run is over.
  std::optional<MicroPlan> next();
  /// Begins a micro-step of the caller's loop.
  MicroPlan count() { return window_->count(); }

  /// Call before the forward of a micro-step that reduces: buffers are copied from rank 0. Collective: the models'
  /// axis, as are reduce() and settle(). Errors: throws std::invalid_argument on all ranks, in the first of the three
  /// calls, if the ranks differ in N, in the length of the run or in declared numbers. They are compared again after a
  /// change, which all ranks must make alike; otherwise the ranks' collectives differ.
  void before_forward(const DrivenModels& models);
  void before_forward() { before_forward(models_); }
  /// Does the same after a backward if the next micro-step reduces.
  void before_next_forward();
  /// Declares a number that must be equal on all ranks, in addition to N and the length of the run.
  void declare(NamedNumber number) { declared_ = std::move(number); }

  /// Returns a scope that suppresses reduction during a micro-step's forward and backward; empty for one that reduces.
  Cover cover(bool reduces) const;
  /// Throws std::logic_error if a scope of the caller keeps a model from reducing.
  void require_open() const;
  /// Runs the backward of a micro-step, covered, or followed by the reduction. Collective if it reduces. Errors: throws
  /// std::logic_error, before anything is run, as require_open() does.
  void backward(bool reduces, const std::function<void()>& differentiate);
  /// Reduces, and waits.
  void reduce();
  void reduce(DrivenModel& model);
  /// Call before a step that may come off a boundary: reduces remaining gradients. Errors: as require_open().
  void settle();

  /// Whether gradients are clipped after each backward, before they are complete (K11 every_micro_step); else once per
  /// update.
  bool clips_partial_sums() const;
  /// Runs `take` if an update is due, or always if the system does not gate steps; else returns accumulated. The window
  /// is closed before `take` runs, and receives its outcome.
  StepOutcome step(const std::function<StepOutcome()>& take);
  /// Runs `clear` if the system clears now (K10); returns whether it did.
  bool clear(const std::function<void()>& clear);

 private:
  void agree(GradSync& sync);
  ClearGradients gate() const { return planned_ ? ClearGradients::engine : gate_; }

  SharedWindow window_;
  ClearGradients gate_;
  std::string name_of_steps_;
  std::optional<NamedNumber> declared_;
  DrivenModels models_;
  std::vector<NamedNumber> agreed_;   ///< numbers that were last seen equal on all ranks
  std::optional<MicroPlan> planned_;  ///< the current micro-step of a planned run
};

}  // namespace accrue
