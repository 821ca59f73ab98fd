// SPDX-License-Identifier: Apache-2.0
// Settling must be equal on all ranks, so it must not depend on facts of one rank. It follows a step, on whose outcome
// all ranks have agreed, and drops the findings of an optimizer that was unscaled without a step. An infinity among
// those gradients is still there when they are unscaled again.
#include "accumulation/accelerate/shared_scaler.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace accrue::accelerate {
namespace {

void multiply(BaseOptimizer& optimizer, double factor) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : optimizer.parameters()) {
    at::Tensor grad = parameter.grad();
    if (grad.defined()) grad.mul_(factor);
  }
}

}  // namespace

SharedScaler::Member& SharedScaler::member(BaseOptimizer& optimizer) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& each) { return each.optimizer == &optimizer; });
  if (found == members_.end()) throw std::logic_error("SharedScaler: the optimizer was not added");
  return *found;
}

at::Tensor SharedScaler::scale(const at::Tensor& loss) {
  settle();
  return scaler.scale(loss);
}

void SharedScaler::unscale(BaseOptimizer& optimizer) {
  Member& one = member(optimizer);
  if (one.stepped) settle();
  scaler.unscale_(optimizer);
  one.unscaled = true;
}

StepOutcome SharedScaler::step(BaseOptimizer& optimizer, const Closure& closure) {
  Member& one = member(optimizer);
  if (one.stepped) settle();
  const StepOutcome outcome = scaler.step(optimizer, closure);
  one.unscaled = one.stepped = due_ = true;
  return outcome;
}

void SharedScaler::cleared(BaseOptimizer& optimizer) {
  member(optimizer).unscaled = false;
}

void SharedScaler::settle() {
  if (!due_) return;
  due_ = false;
  const double before = scaler.get_scale();
  for (Member& each : members_)
    if (each.unscaled && !each.stepped) scaler.forget_gradients(*each.optimizer);
  scaler.update();
  const double after = scaler.get_scale();
  for (Member& each : members_) {
    // Gradients that were divided get the new scale; the others change from the old scale to it.
    const double factor = each.unscaled ? after : after / before;
    if (factor != 1.0) multiply(*each.optimizer, factor);
    each.unscaled = each.stepped = false;
  }
}

void SharedScaler::begin_anew() {
  for (Member& each : members_) each.unscaled = each.stepped = false;
  due_ = false;
  scaler.forget_gradients();
}

void SharedScaler::forget() {
  begin_anew();
  members_.clear();
}

}  // namespace accrue::accelerate
