// SPDX-License-Identifier: Apache-2.0
// Whether communication between replicas overlaps computation. The ranks follow the plan.
#pragma once

#include <string>

#include "accrue/run/plan/run_plan.h"

namespace accrue {

/// Whether gradients are reduced bucket by bucket during a window's last backward. Otherwise they are reduced after it:
/// - under the two other mechanisms of K8: post_backward leaves all cores to the backward, and handlers reduces all
///   gradients at once, so it needs the last of them;
/// - if parallel.overlap_grad_reduce is off;
/// - if a bug of the gallery changes a window's gradients before they are reduced;
///  - on a pipeline that reduces in every micro-step: another backward of the same chunk could begin before the buckets
///   of the previous one have arrived. If only a window's last backward of each chunk reduces, this cannot happen.
bool reduces_during_backward(const RunPlan& plan);
/// Returns why not, for a sentence; empty if they are.
std::string reason_to_reduce_after(const RunPlan& plan);
/// Returns the reason that follows from K8 alone.
std::string reason_to_reduce_after(const AccumulationKnobs& knobs);

}  // namespace accrue
