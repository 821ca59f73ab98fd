// SPDX-License-Identifier: Apache-2.0
// SharedScaler: one loss scale for several optimizers that step at different times: a loss of each, one loss of all, or
// one that sits out some rounds. The scale is updated once, before the first loss that is scaled after a step, and then
// every optimizer's gradients are brought to the new scale: those that accumulated under the old one by the ratio of
// the two, those that were unscaled and not yet applied by the whole of it. Scales move by powers of two unless the
// options say otherwise, and a product with one is exact, so gradients of two scales are never added. The cost is
// nothing while the scale stays and nothing waits, one pass over an optimizer's gradients where it does.
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

  /// From now on its gradients follow the scale. It must outlive this, or its forget().
  void add(BaseOptimizer& optimizer) { members_.push_back({.optimizer = &optimizer}); }

  at::Tensor scale(const at::Tensor& loss);
  /// Errors: throws std::logic_error at a second one since the scale was last settled.
  void unscale(BaseOptimizer& optimizer);
  /// Collective: the data axis.
  StepOutcome step(BaseOptimizer& optimizer, const Closure& closure = {});
  /// Its gradients were cleared: they have no scale.
  void cleared(BaseOptimizer& optimizer);
  /// The update that is due after a step.
  void settle();
  /// Forgets what is known of the gradients: they have been replaced.
  void begin_anew();
  /// The same, and forgets all optimizers.
  void forget();

  GradScaler scaler;

 private:
  struct Member {
    BaseOptimizer* optimizer;
    bool unscaled = false;  ///< what it holds has no scale: divided since the last settling, and not cleared
    bool stepped = false;   ///< since the last settling
  };
  Member& member(BaseOptimizer& optimizer);

  std::vector<Member> members_;
  bool due_ = false;
};

}  // namespace accrue::accelerate
