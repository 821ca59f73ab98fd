// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/plan/overlap.h"

#include "accrue/run/fields/choice_names.h"

namespace accrue {

std::string reason_to_reduce_after(const AccumulationKnobs& knobs) {
  if (knobs.reduce_mechanism == ReduceMechanism::reducer) return {};
  return "accumulation.reduce_mechanism " + std::string(to_name(knobs.reduce_mechanism)) +
         " reduces after it by definition; only reducer overlaps the two";
}

std::string reason_to_reduce_after(const RunPlan& plan) {
  if (plan.knobs.reduce_mechanism != ReduceMechanism::reducer) return reason_to_reduce_after(plan.knobs);
  if (!plan.spec.parallel.overlap_grad_reduce) return "parallel.overlap_grad_reduce is off";
  if (plan.spec.teaching.bug != Bug::none) return "teaching.bug meddles with them first";
  if (plan.grid.pipeline > 1 && plan.knobs.reduce_when != ReduceWhen::boundary)
    return "on a pipeline that reduces in every micro-step";
  return {};
}

bool reduces_during_backward(const RunPlan& plan) {
  return reason_to_reduce_after(plan).empty();
}

}  // namespace accrue
