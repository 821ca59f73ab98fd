// SPDX-License-Identifier: Apache-2.0
// SharedScaler: one loss scale for several optimizers that step at different times: with a loss each, a common loss, or
// an optimizer that pauses for some rounds. The scale is updated once, before the first loss that is scaled after a
// step. Every optimizer's gradients are then converted to the new scale: accumulated ones by the ratio of the scales,
// unscaled but unapplied ones by the whole new scale. Scales are powers of two unless the options say otherwise, and a
// product with one is exact, so gradients of two scales are never mixed. The cost is one pass over an optimizer's
// gradients when the scale changes while they wait, else nothing.
//
// Source: the role of torch.amp.GradScaler in Accelerate 1.15, which updates after each step, so that a second
// optimizer is unscaled by a scale that its gradients never had. Thread: the training thread.
#pragma once

#include <vector>

#include "accrue/accumulation/base_optimizer.h"
#include "accrue/accumulation/grad_scaler.h"

namespace accrue::accelerate {

class SharedScaler {
 public:
  SharedScaler(const GradScalerOptions& options, Communicator* axis) : scaler(options, axis) {}

  /// Converts its gradients with the scale from now on. It must outlive this, or its forget().
  void add(BaseOptimizer& optimizer) { members_.push_back({.optimizer = &optimizer}); }

  at::Tensor scale(const at::Tensor& loss);
  /// Errors: throws std::logic_error at a second call since the scale was last settled.
  void unscale(BaseOptimizer& optimizer);
  /// Collective: the data axis.
  StepOutcome step(BaseOptimizer& optimizer, const Closure& closure = {});
  /// Its gradients were cleared, so they have no scale.
  void cleared(BaseOptimizer& optimizer);
  /// Does the update that is due after a step.
  void settle();
  /// Forgets the state of the gradients, because they were replaced.
  void begin_anew();
  /// Does the same, and forgets all optimizers.
  void forget();

  GradScaler scaler;

 private:
  struct Member {
    BaseOptimizer* optimizer;
    bool unscaled = false;  ///< its gradients have no scale: unscaled since the last settling, and not cleared
    bool stepped = false;   ///< since the last settling
  };
  Member& member(BaseOptimizer& optimizer);

  std::vector<Member> members_;
  bool due_ = false;
};

}  // namespace accrue::accelerate
