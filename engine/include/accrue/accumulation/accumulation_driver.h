// SPDX-License-Identifier: Apache-2.0
// AccumulationDriver: the one accumulator. The trainer and the classes of all systems run a window through it: count,
// cover, backward, reduce, clip, step, clear, report. It holds the window, which decides, and the models whose
// gradients are reduced. A system differs from another in the knobs of its window and in the names it gives these
// calls.
//
// Two ways to drive it, as the window has them. A loop that belongs to the caller counts each micro-step, and its calls
// are gated as its system gates them (K10). A planned run takes next(), and steps and clears at boundaries by itself.
// Thread: the training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/grad_sync.h"
#include "accrue/run/accumulation_window.h"

namespace accrue {

using SharedWindow = std::shared_ptr<AccumulationWindow>;

/// A model whose gradients a driver reduces.
struct DrivenModel {
  explicit DrivenModel(GradSync& reducer) : sync(reducer), seen(reducer.arrivals()) {}

  /// Gradients have arrived since the last call.
  bool moved() {
    const std::int64_t before = std::exchange(seen, sync.arrivals());
    return before != seen;
  }
  /// Grows with each gradient that arrives and with each reduction.
  std::int64_t changes() const { return sync.arrivals() + reductions; }

  GradSync& sync;
  bool unreduced = false;  ///< it holds gradients of this rank alone that the next update needs from all ranks
  std::int64_t reductions = 0;
  std::int64_t seen;  ///< arrivals at the last look
};
using DrivenModels = std::vector<std::shared_ptr<DrivenModel>>;

/// Its models do not reduce while it lives. Afterwards they do what they did before; one that is gone is left out.
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
  /// `gate`: of the caller's loop; a planned run steps and clears by itself. `sync`: the model, if there is one and it
  /// reduces; it must outlive this. `name_of_steps`: what the system calls N, for the error where the ranks' differ;
  /// empty where they cannot. Errors: throws std::invalid_argument without a window.
  AccumulationDriver(SharedWindow window, ClearGradients gate, std::string name_of_steps, GradSync* sync = nullptr);

  AccumulationWindow& window() { return *window_; }
  const AccumulationWindow& window() const { return *window_; }
  const SharedWindow& shared_window() const { return window_; }
  const DrivenModels& models() const { return models_; }
  /// Takes the place of all models; null: none.
  void set_model(GradSync* sync);

  /// A micro-step of a planned run; nothing when the run is over.
  std::optional<MicroPlan> next();
  /// A micro-step of the caller's loop begins.
  MicroPlan count() { return window_->count(); }

  /// Before the forward of a micro-step that reduces: buffers follow rank 0. Collective: the models' axis, as are
  /// reduce() and settle(). Errors: throws std::invalid_argument on all ranks, in whichever of the three comes first,
  /// where the ranks differ in N, in the length of the run or in what was declared. They compare these again when they
  /// have changed, which all ranks do alike: where some do not, their collectives are different ones.
  void before_forward(const DrivenModels& models);
  void before_forward() { before_forward(models_); }
  /// The same after a backward, where the next micro-step reduces.
  void before_next_forward();
  /// What else the ranks must have alike for their windows to meet, beside N and the length of the run.
  void declare(NamedNumber number) { declared_ = std::move(number); }

  /// A scope that suppresses reduction during a micro-step's forward and backward; empty for one that reduces.
  Cover cover(bool reduces) const;
  /// Throws std::logic_error where a scope of the caller's keeps a model from reducing.
  void require_open() const;
  /// Runs the backward of a micro-step: covered, or reduced afterwards. Collective where it reduces. Errors: throws
  /// std::logic_error, before anything is run, as require_open() does.
  void backward(bool reduces, const std::function<void()>& differentiate);
  /// Reduces, and waits.
  void reduce();
  void reduce(DrivenModel& model);
  /// Before a step that may come off a boundary: reduces what was not. Errors: as require_open().
  void settle();

  /// Gradients are clipped after each backward, before they are whole (K11 every_micro_step); else once an update.
  bool clips_partial_sums() const;
  /// Takes the update where one is due, or always where the system does not gate steps; else answers accumulated. The
  /// window is closed before `take` runs, and then learns the outcome.
  StepOutcome step(const std::function<StepOutcome()>& take);
  /// Clears where the system does (K10): true if `clear` was run.
  bool clear(const std::function<void()>& clear);

 private:
  void agree(GradSync& sync);
  ClearGradients gate() const { return planned_ ? ClearGradients::engine : gate_; }

  SharedWindow window_;
  ClearGradients gate_;
  std::string name_of_steps_;
  std::optional<NamedNumber> declared_;
  DrivenModels models_;
  std::vector<NamedNumber> agreed_;   ///< what the ranks were last seen to have alike
  std::optional<MicroPlan> planned_;  ///< the current micro-step of a planned run
};

}  // namespace accrue
