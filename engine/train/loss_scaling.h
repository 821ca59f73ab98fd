// SPDX-License-Identifier: Apache-2.0
// Loss scaling of a window: how its losses become its gradient. The gradient is
//     factor * reduce over ranks( sum over micro-steps of weight * d(loss sum) ),
// and the reported loss is the same expression over the loss sums themselves, so numerator and denominator agree by
// construction. Deferred normalisation puts the denominator in `factor`, once, when the true count is known; eager
// normalisation puts it in `weight`. Sources: accumulation knobs K5, K6 and K8; the token recipe of Hugging Face's
// guide on gradient accumulation (a denominator counted over all ranks requires a sum of gradients, not a mean).
#pragma once

#include <cstdint>

#include "accrue/models/batch.h"
#include "accrue/run/fields/spec.h"
#include "accrue/run/window/accumulation_window.h"

namespace accrue {

/// Contents of a window: of one rank, or over all ranks.
struct WindowCounts {
  std::int64_t items = 0;
  std::int64_t samples = 0;
};

/// Divisors of a window with a second loss: a count of 0 items becomes 1.
inline WindowCounts divisor_of(WindowCounts counts, bool second_loss) {
  if (second_loss && counts.items == 0 && counts.samples > 0) counts.items = 1;
  return counts;
}

/// Divisor of a micro-step's loss. Samples without an item still have a second loss, for which it is 1.
inline std::int64_t items_of(const LossSum& loss) {
  return loss.count == 0 && loss.second.defined() ? 1 : loss.count;
}

class LossScaling {
 public:
  LossScaling(const AccumulationKnobs& knobs, Bug bug, std::int64_t world);

  /// Reduction that the reducer applies to the ranks' gradients.
  ReduceOp reduce_op() const { return reduce_op_; }
  /// Whether micro-steps divide by a count of the whole window, so that its batches must be fetched and counted before
  /// the first.
  bool counts_first() const;
  bool counts_over_ranks() const { return counts_items_ && global_; }
  /// For a model with two losses, each a sum with its own count: factor of the second, with which a division by the
  /// first's count gives both means. `counts`: of the window, over the scope's ranks; needed before its first
  /// micro-step if counts_first_for_second().
  double share_of_second(const LossSum& loss, const WindowCounts& counts) const;
  bool counts_first_for_second() const;

  /// Factor of a micro-step's loss sum before its backward. `counts`: of the window, over the scope's ranks; needed if
  /// counts_first(). 0 if there is nothing to divide by.
  double weight(const MicroPlan& plan, const WindowCounts& micro, const WindowCounts& counts) const;
  /// Factor of the reduced gradient. `plan`: of the boundary's micro-step.
  double factor(const MicroPlan& plan, const WindowCounts& counts) const;
  /// The ranks' numerators, reduced like gradients; for ranks that never reduce, the mean of the losses that each
  /// minimises.
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
  double correction_;  ///< between the required reduction and the actual one
};

}  // namespace accrue
