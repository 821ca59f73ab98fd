// SPDX-License-Identifier: Apache-2.0
// Closed forms that were published of a GPT (arXiv 2205.05198), to set beside what the plan counts: the bytes that a
// block keeps of one micro-batch, in 16 bit and with dropout, and the operations of forward and backward.
#pragma once

#include "accrue/run/run_spec.h"

namespace accrue {

/// Of one block on one rank, by the row for its tensor ranks, sequence parallelism and recomputation.
double published_block_bytes(const ModelSpec& model, std::int64_t micro_batch, const ParallelSpec& parallel);

/// Of one sample in the whole model. They count the scores that a causal mask leaves out too, which model_flops() does
/// not.
double published_flops(const ModelSpec& model, const ParallelSpec& parallel);

}  // namespace accrue
