// SPDX-License-Identifier: Apache-2.0
// Whether what replicas exchange travels beside computation: the ranks do as the plan says.
#pragma once

#include <string>

#include "accrue/run/run_plan.h"

namespace accrue {

/// Gradients are reduced bucket by bucket while a window's last backward still runs, not after it. K8: only the reducer
/// does so. The two others reduce after the backward by definition: post_backward for ranks whose cores the backward
/// needs, handlers all at once, which the last gradient completes. The bugs of the gallery meddle with a window's
/// gradients before they are reduced, so those runs reduce after it. On a pipeline each chunk's last backward of a
/// window sends its buckets out; where every micro-step reduces, others of the same chunk may come before that is over.
bool reduces_during_backward(const RunPlan& plan);
/// Why not, for a sentence; empty where they are.
std::string reason_to_reduce_after(const RunPlan& plan);
/// As far as K8 alone says.
std::string reason_to_reduce_after(const AccumulationKnobs& knobs);

}  // namespace accrue
