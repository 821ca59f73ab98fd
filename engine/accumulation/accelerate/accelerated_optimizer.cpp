// SPDX-License-Identifier: Apache-2.0
// The original gates zero_grad() by the flag alone, so a zero_grad() before the backward of a boundary micro-step wipes
// the whole group: the flag is already true. Here the optimizer knows whether its gradients were applied, belong to an
// open group or are a whole one, and clears what nobody waits for. It looks at the gradients rather than at the calls,
// so that a backward of the caller's own counts as well. The cost is a few comparisons per parameter and micro-step.
#include "accrue/accumulation/accelerate/accelerated_optimizer.h"

#include <utility>

#include "gradient_watch.h"

namespace accrue::accelerate {

AcceleratedOptimizer::AcceleratedOptimizer(std::shared_ptr<BaseOptimizer> inner, GradientState& state,
                                           SharedScaler* scaler, Calls calls)
    : inner_(std::move(inner)),
      state_(state),
      scaler_(scaler),
      calls_(std::move(calls)),
      watch_(std::make_unique<GradientWatch>()) {
  gradients_are_known();
  if (scaler_ != nullptr) scaler_->add(*inner_);
}

AcceleratedOptimizer::~AcceleratedOptimizer() = default;

void AcceleratedOptimizer::backward(const at::Tensor& loss, BackwardOptions options) {
  calls_.backward(loss, options);
}

bool AcceleratedOptimizer::look() {
  const bool moved = watch_->moved(inner_->torch());
  if (moved) gradients_ = state_.sync_gradients() ? Gradients::complete : Gradients::open;
  return moved;
}

void AcceleratedOptimizer::gradients_are_known() {
  static_cast<void>(watch_->moved(inner_->torch()));
}

void AcceleratedOptimizer::set_gradients(Gradients gradients) {
  gradients_ = gradients;
  gradients_are_known();
}

StepOutcome AcceleratedOptimizer::step_inner(const Closure& closure) {
  return scaler_ == nullptr ? inner_->step(closure) : scaler_->step(*inner_, closure);
}

StepOutcome AcceleratedOptimizer::step(const Closure& closure) {
  if (state_.sync_gradients()) calls_.before_update(*this);
  state_.script().note([this] { step(); });
  if (!state_.sync_gradients()) return outcome_ = StepOutcome::accumulated;
  outcome_ = step_inner(closure);
  skipped_ = outcome_ == StepOutcome::skipped_overflow;
  set_gradients(Gradients::applied);
  state_.window().take_boundary();
  state_.window().report(outcome_ == StepOutcome::skipped_overflow ? outcome_ : StepOutcome::updated);
  return outcome_;
}

void AcceleratedOptimizer::zero_grad(bool set_to_none) {
  state_.script().note([=, this] { zero_grad(set_to_none); });
  look();
  const bool sync = state_.sync_gradients();
  const bool nobody_waits = gradients_ == Gradients::applied || (sync && gradients_ == Gradients::complete);
  if (state_.options().replay.zero_before_backward ? !sync : !nobody_waits) return;
  inner_->zero_grad(set_to_none);
  if (scaler_ != nullptr) scaler_->cleared(*inner_);
  set_gradients(Gradients::applied);
}

}  // namespace accrue::accelerate
