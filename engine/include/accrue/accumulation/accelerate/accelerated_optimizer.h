// SPDX-License-Identifier: Apache-2.0
// AcceleratedOptimizer: step() and zero_grad() act on a boundary. Source: Hugging Face Accelerate 1.15,
// AcceleratedOptimizer, without its hazard: a zero_grad() before the backward of a boundary micro-step does not throw
// the window away. Thread: the training thread.
#pragma once

#include <functional>
#include <memory>

#include "accrue/accumulation/accelerate/shared_scaler.h"
#include "accrue/accumulation/accumulation_driver.h"
#include "accrue/accumulation/base_optimizer.h"

namespace accrue::accelerate {

class AcceleratedOptimizer final : public BaseOptimizer {
 public:
  /// What it asks of its Accelerator.
  struct Calls {
    std::function<void(const at::Tensor& loss, BackwardOptions options)> backward;
    std::function<void(AcceleratedOptimizer&)> settle;           ///< reduces what the update needs and no backward did
    std::function<std::int64_t(AcceleratedOptimizer&)> changes;  ///< grows as its gradients arrive and are reduced
  };

  /// Made by Accelerator::prepare. `scaler` may be null. With `by_flag` zero_grad() goes by the flag alone.
  AcceleratedOptimizer(std::shared_ptr<BaseOptimizer> inner, AccumulationDriver& driver, SharedScaler* scaler,
                       Calls calls, bool by_flag);

  /// The Accelerator's backward(): divides by N.
  void backward(const at::Tensor& loss, BackwardOptions options = {}) override;
  /// On a boundary steps the inner optimizer, with fp16 through the scaler; else accumulated. Gradients of a prepared
  /// model that no backward has reduced are reduced first: those of a plain loss.backward(), and those of a model that
  /// the boundary's backward did not reach. Collective then, and with fp16: the data axis.
  StepOutcome step(const Closure& closure = {}) override;
  /// Clears gradients that were applied, whatever the flag, and on a boundary also those of a complete window.
  /// Gradients of a window that is still open stay. The replay switch zero_before_backward goes by the flag alone.
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

  /// A micro-step begins: what has come so far belongs to the ones before.
  void begin_micro_step() { begun_at_ = calls_.changes(*this); }
  /// Some of its gradients have not been applied.
  bool waits() { return waits_ || calls_.changes(*this) != applied_at_; }
  /// The same, as it was when the gradients were saved.
  void set_waits(bool waits);

 private:
  std::shared_ptr<BaseOptimizer> inner_;
  AccumulationDriver& driver_;
  SharedScaler* scaler_;
  Calls calls_;
  bool by_flag_;
  bool waits_ = false;  ///< whatever has arrived: a step was asked for off a boundary
  std::int64_t applied_at_ = 0;
  std::int64_t begun_at_ = 0;
  StepOutcome outcome_ = StepOutcome::accumulated;
  bool skipped_ = false;
};

}  // namespace accrue::accelerate
