// SPDX-License-Identifier: Apache-2.0
// Whether what replicas exchange travels beside computation: the ranks do as the plan says.
#pragma once

#include <string>

#include "accrue/run/run_plan.h"

namespace accrue {

/// Whether gradients are reduced bucket by bucket while a window's last backward still runs. Else the backward ends
/// first:
///  - under the two other mechanisms of K8. post_backward leaves all cores to the backward; handlers reduce all
///    gradients at once, and so need the last of them;
///  - where parallel.overlap_grad_reduce is off;
///  - where a bug of the gallery changes a window's gradients before they are reduced;
///  - on a pipeline that reduces in every micro-step: another backward of the same chunk could begin before the buckets
///    of the one before it have arrived. Where only a window's last backward of each chunk reduces, that cannot be.
bool reduces_during_backward(const RunPlan& plan);
/// Why not, for a sentence; empty where they are.
std::string reason_to_reduce_after(const RunPlan& plan);
/// As far as K8 alone says.
std::string reason_to_reduce_after(const AccumulationKnobs& knobs);

}  // namespace accrue
