// SPDX-License-Identifier: Apache-2.0
// Each deliberate bug changes one decision of a window; the rest of the trainer does not know of it.
#include "train/faults.h"

#include <algorithm>

namespace accrue {

ModelSpec Faults::model(const RunSpec& spec) {
  ModelSpec model = spec.model;
  if (spec.teaching.bug == Bug::batch_norm) model.batch_norm = true;
  return model;
}

bool Faults::reduces(const MicroPlan& micro) const {
  // The first micro-step is reduced instead of the last, so the ranks end with different sums.
  return plan_.spec.teaching.bug == Bug::no_sync_off_by_one ? micro.position == 0 : micro.sync;
}

bool Faults::clears_before(const MicroPlan& micro) const {
  if (plan_.spec.teaching.bug == Bug::zero_grad_inside) return micro.position > 0;
  return plan_.knobs.replays(Replay::zero_before_backward) && micro.update;
}

bool Faults::overflows(const MicroPlan& micro) const {
  const TeachingSpec& teaching = plan_.spec.teaching;
  if (teaching.overflow_rank >= 0 && teaching.overflow_rank != rank_) return false;
  return std::ranges::find(teaching.overflow_at, micro.micro_step) != teaching.overflow_at.end();
}

bool Faults::leaves_out(const MicroPlan& micro) const {
  return plan_.spec.teaching.bug == Bug::skipped_micro_step && micro.position == 1;
}

FlatRange Faults::unreduced(const FlatLayout& layout) const {
  switch (plan_.spec.teaching.bug) {
    // A parameter that the reducer believes unused keeps each rank's own gradient.
    case Bug::unused_parameters:
      return layout.parameters.front();
    case Bug::pipeline_sync:  // the stage with the second half of the parameters
      return {0, layout.parameters[layout.parameters.size() / 2].offset +
                     layout.parameters[layout.parameters.size() / 2].size};
    default:
      return {};
  }
}

at::Tensor Faults::keep_unreduced(const DistributedDataParallel& reducer) const {
  const FlatRange range = unreduced(reducer.layout());
  if (range.size == 0) return {};
  return reducer.flat_gradients().narrow(0, range.offset, range.size).clone();
}

void Faults::put_back(const DistributedDataParallel& reducer, const at::Tensor& kept) const {
  if (!kept.defined()) return;
  const FlatRange range = unreduced(reducer.layout());
  reducer.flat_gradients().narrow(0, range.offset, range.size).copy_(kept);
}

}  // namespace accrue
