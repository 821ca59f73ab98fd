// SPDX-License-Identifier: Apache-2.0
// The original gates zero_grad() by the flag alone, so a zero_grad() before the backward of a boundary micro-step
// discards the whole window: the flag is already true. Here the optimizer knows whether gradients have arrived since
// its last step and since the micro-step began, and clears only those that no update needs. It asks the models instead
// of counting calls, so that a caller's own backward counts too.
#include "accrue/accumulation/accelerate/accelerated_optimizer.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "accelerator_impl.h"

namespace accrue::accelerate {

AcceleratedOptimizer::AcceleratedOptimizer(const std::shared_ptr<BaseOptimizer>& wrapped, AcceleratorImpl& accelerator)
    : OptimizerWrapper(wrapped), accelerator_(accelerator) {
  if (accelerator_.scaler) accelerator_.scaler->add(inner());
  set_waits(false);
  begin_micro_step();
}

const std::vector<bool>& AcceleratedOptimizer::models() {
  std::size_t parameters = 0;
  for (const auto& group : param_groups()) parameters += group.params().size();
  if (models_.size() == accelerator_.models.size() && known_parameters_ == parameters) return models_;
  const auto own = this->parameters();
  models_ = accelerator_.models_of(own);
  known_parameters_ = parameters;
  not_prepared_.clear();
  for (const at::Tensor& each : own)
    if (accelerator_.is_of_no_model(each)) not_prepared_.push_back(each);
  return models_;
}

std::int64_t AcceleratedOptimizer::changes() {
  const auto& of = models();
  if (std::find(of.begin(), of.end(), true) == of.end()) return accelerator_.backwards;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (of[i]) sum += accelerator_.models[i]->changes();
  return sum;
}

void AcceleratedOptimizer::backward(const at::Tensor& loss, BackwardOptions options) {
  accelerator_.backward(loss, options);
}

void AcceleratedOptimizer::set_waits(bool waits) {
  waits_ = waits;
  applied_at_ = changes();
}

/// Continues like the original: the caller may reduce the gradients, or want them to differ.
void AcceleratedOptimizer::warn_of_gradients_that_nobody_reduces() {
  if (warned_ || accelerator_.axis.size() == 1) return;
  const auto alone = std::count_if(not_prepared_.begin(), not_prepared_.end(),
                                   [](const at::Tensor& each) { return each.grad().defined(); });
  if (alone == 0) return;
  warned_ = true;
  TORCH_WARN(
      "AcceleratedOptimizer: no prepared model holds ", alone,
      " of the parameters that have gradients, so those are not reduced: each of the ", accelerator_.axis.size(),
      " ranks steps by its own, and the weights drift apart. Call prepare(model) before the loop, or reduce them "
      "yourself before step()");
}

StepOutcome AcceleratedOptimizer::step(const Closure& closure) {
  accelerator_.settle(models());
  outcome_ = accelerator_.driver.step([&] {
    warn_of_gradients_that_nobody_reduces();
    return accelerator_.scaler ? accelerator_.scaler->step(inner(), closure) : inner().step(closure);
  });
  if (outcome_ == StepOutcome::accumulated) {
    waits_ = true;
    return outcome_;
  }
  skipped_ = outcome_ == StepOutcome::skipped_overflow;
  set_waits(false);
  return outcome_;
}

void AcceleratedOptimizer::zero_grad(bool set_to_none) {
  const bool by_flag = accelerator_.state.options().replay.zero_before_backward;
  const bool boundary = accelerator_.state.sync_gradients();
  const bool complete = boundary && changes() != begun_at_;
  if (by_flag ? !boundary : waits() && !complete) return;
  inner().zero_grad(set_to_none);
  if (accelerator_.scaler) accelerator_.scaler->cleared(inner());
  set_waits(false);
}

}  // namespace accrue::accelerate
