// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/overlap.h"

namespace accrue {

bool reduces_during_backward(const RunPlan& plan) {
  const bool once = plan.grid.pipeline == 1 || plan.knobs.reduce_when == ReduceWhen::boundary;
  return plan.spec.parallel.overlap_grad_reduce && once && plan.spec.teaching.bug == Bug::none &&
         plan.knobs.reduce_mechanism == ReduceMechanism::reducer;
}

}  // namespace accrue
