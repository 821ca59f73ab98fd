// SPDX-License-Identifier: Apache-2.0
// How the losses of a window become its gradient. The gradient is
//     factor * reduce over ranks( sum over micro-steps of weight * d(loss sum) ),
// and the reported loss is the same expression over the loss sums themselves, so that numerator and denominator agree
// by construction. Deferred normalisation puts the denominator in `factor`, once, when the true count is known; eager
// normalisation puts it in `weight`. Sources: accumulation knobs K5, K6 and K8; the token recipe of Hugging Face's
// guide on gradient accumulation (a denominator counted over all ranks calls for a sum of gradients, not a mean).
#pragma once

#include <cstdint>

#include "accrue/models/batch.h"
#include "accrue/run/accumulation_window.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// What a window holds: of one rank, or over all ranks.
struct WindowCounts {
  std::int64_t items = 0;
  std::int64_t samples = 0;
};

/// What a window that holds a second loss is divided by: one stands for items where there is none.
inline WindowCounts divisor_of(WindowCounts counts, bool second_loss) {
  if (second_loss && counts.items == 0 && counts.samples > 0) counts.items = 1;
  return counts;
}

/// What a micro-step's loss is divided by. Samples without an item have a second loss, which one stands for.
inline std::int64_t items_of(const LossSum& loss) {
  return loss.count == 0 && loss.second.defined() ? 1 : loss.count;
}

class LossScaling {
 public:
  LossScaling(const AccumulationKnobs& knobs, Bug bug, std::int64_t world);

  /// What the reducer does with the ranks' gradients.
  ReduceOp reduce_op() const { return reduce_op_; }
  /// Micro-steps divide by a count of the whole window: its batches must be fetched and counted before the first.
  bool counts_first() const;
  bool counts_over_ranks() const { return counts_items_ && global_; }
  /// Where a model has two losses, each a sum with a count of its own: what the second is multiplied by, so that the
  /// division by the first's count leaves both means. `counts`: of the window, over the scope's ranks; they are needed
  /// before its first micro-step where counts_first_for_second().
  double share_of_second(const LossSum& loss, const WindowCounts& counts) const;
  bool counts_first_for_second() const;

  /// What a micro-step's loss sum is multiplied by before its backward. `counts`: of the window, over the scope's
  /// ranks; needed where counts_first(). 0 where there is nothing to divide by.
  double weight(const MicroPlan& plan, const WindowCounts& micro, const WindowCounts& counts) const;
  /// What the reduced gradient is multiplied by. `plan`: of the boundary's micro-step.
  double factor(const MicroPlan& plan, const WindowCounts& counts) const;
  /// The ranks' numerators, reduced as gradients are; of ranks that never reduce, the mean of what each descends.
  double reduced(double numerator_sum) const;

 private:
  AccumulationKnobs knobs_;
  Bug bug_;
  double ranks_;
  double world_;  ///< ranks that reduce together
  bool counts_items_;
  bool global_;    ///< items are counted over all ranks
  bool deferred_;  ///< the denominator is applied at the boundary
  ReduceOp reduce_op_;
  double correction_;  ///< between the reduction that is wanted and the one that is done
};

}  // namespace accrue
