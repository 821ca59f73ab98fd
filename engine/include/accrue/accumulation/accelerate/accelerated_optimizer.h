// SPDX-License-Identifier: Apache-2.0
// AcceleratedOptimizer: step() and zero_grad() act on a boundary. Source: Hugging Face Accelerate 1.15,
// AcceleratedOptimizer, without its hazard: a zero_grad() before the backward of a boundary micro-step does not throw
// the group away. Thread: the training thread.
#pragma once

#include <functional>
#include <memory>

#include "accrue/accumulation/accelerate/gradient_state.h"
#include "accrue/accumulation/accelerate/shared_scaler.h"
#include "accrue/accumulation/base_optimizer.h"

namespace accrue::accelerate {

class GradientWatch;

class AcceleratedOptimizer final : public BaseOptimizer {
 public:
  /// What it asks of its Accelerator.
  struct Calls {
    std::function<void(const at::Tensor& loss, BackwardOptions options)> backward;
    std::function<void(AcceleratedOptimizer&)> before_update;  ///< reduces what the update needs and no backward did
  };

  /// Made by Accelerator::prepare. `scaler` may be null.
  AcceleratedOptimizer(std::shared_ptr<BaseOptimizer> inner, GradientState& state, SharedScaler* scaler, Calls calls);
  ~AcceleratedOptimizer() override;

  /// The Accelerator's backward(): divides by N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// On a boundary steps the inner optimizer, with fp16 through the scaler; else accumulated. Gradients of a prepared
  /// model that no backward has reduced are reduced first: those of a plain loss.backward(), and those of a model that
  /// the boundary's backward did not reach. Collective then, and with fp16: the data axis.
  StepOutcome step(const Closure& closure = {}) override;
  /// Clears gradients that were applied, whatever the flag, and on a boundary also those of a complete group. Gradients
  /// of a group that is still open stay. The replay switch zero_before_backward goes by the flag alone.
  void zero_grad(bool set_to_none = true) override;

  /// The last step on a boundary found an overflow. Off a boundary it keeps its answer.
  bool step_was_skipped() const { return skipped_; }
  /// What became of the last step().
  StepOutcome outcome() const { return outcome_; }

  StateDict state_dict() const override { return inner_->state_dict(); }
  void load_state_dict(const StateDict& state) override { inner_->load_state_dict(state); }
  std::string text() const override { return "AcceleratedOptimizer\n" + inner_->text(); }
  torch::optim::Optimizer& torch() override { return inner_->torch(); }
  BaseOptimizer& inner() { return *inner_; }

  /// What the gradients hold: nothing that is still to be applied, a part of a group, or a whole one.
  enum class Gradients { applied, open, complete };
  Gradients gradients() const { return gradients_; }
  void set_gradients(Gradients gradients);
  /// Gradients have come since the last look: they are a part of a group, or on a boundary complete it.
  bool look();
  /// Whatever the gradients are now, nothing has come.
  void gradients_are_known();

 private:
  StepOutcome step_inner(const Closure& closure);

  std::shared_ptr<BaseOptimizer> inner_;
  GradientState& state_;
  SharedScaler* scaler_;
  Calls calls_;
  std::unique_ptr<GradientWatch> watch_;
  Gradients gradients_ = Gradients::applied;
  StepOutcome outcome_ = StepOutcome::accumulated;
  bool skipped_ = false;
};

}  // namespace accrue::accelerate
