// SPDX-License-Identifier: Apache-2.0
// The original gates zero_grad() by the flag alone, so a zero_grad() before the backward of a boundary micro-step wipes
// the whole window: the flag is already true. Here the optimizer knows whether gradients have come since its last step,
// and since the micro-step began, and clears what no update waits for. It asks the models rather than counting calls,
// so that a backward of the caller's own counts as well.
#include "accrue/accumulation/accelerate/accelerated_optimizer.h"

#include <utility>

namespace accrue::accelerate {

AcceleratedOptimizer::AcceleratedOptimizer(std::shared_ptr<BaseOptimizer> inner, AccumulationDriver& driver,
                                           SharedScaler* scaler, Calls calls, bool by_flag)
    : inner_(std::move(inner)), driver_(driver), scaler_(scaler), calls_(std::move(calls)), by_flag_(by_flag) {
  if (scaler_ != nullptr) scaler_->add(*inner_);
  applied_at_ = begun_at_ = calls_.changes(*this);
}

void AcceleratedOptimizer::backward(const at::Tensor& loss, BackwardOptions options) {
  calls_.backward(loss, options);
}

void AcceleratedOptimizer::set_waits(bool waits) {
  waits_ = waits;
  applied_at_ = calls_.changes(*this);
}

StepOutcome AcceleratedOptimizer::step(const Closure& closure) {
  calls_.settle(*this);
  outcome_ = driver_.step([&] { return scaler_ == nullptr ? inner_->step(closure) : scaler_->step(*inner_, closure); });
  if (outcome_ == StepOutcome::accumulated) {
    waits_ = true;
    return outcome_;
  }
  skipped_ = outcome_ == StepOutcome::skipped_overflow;
  set_waits(false);
  return outcome_;
}

void AcceleratedOptimizer::zero_grad(bool set_to_none) {
  const bool boundary = driver_.window().boundary_due();
  const bool complete = boundary && calls_.changes(*this) != begun_at_;
  if (by_flag_ ? !boundary : waits() && !complete) return;
  inner_->zero_grad(set_to_none);
  if (scaler_ != nullptr) scaler_->cleared(*inner_);
  set_waits(false);
}

}  // namespace accrue::accelerate
