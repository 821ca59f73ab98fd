// SPDX-License-Identifier: Apache-2.0
// Published closed forms for a GPT (arXiv 2205.05198), to compare with the plan's counts: the bytes that a block keeps
// of one micro-batch, in 16 bit and with dropout, and the operations of forward and backward.
#pragma once

#include "accrue/run/fields/spec.h"

namespace accrue {

/// Bytes of one block on one rank, by the published row for its tensor ranks, sequence parallelism and recomputation.
double published_block_bytes(const ModelSpec& model, std::int64_t micro_batch, const ParallelSpec& parallel);

/// Operations of one sample in the whole model. Unlike model_flops(), they include the scores that a causal mask leaves
/// out.
double published_flops(const ModelSpec& model, const ParallelSpec& parallel);

}  // namespace accrue
