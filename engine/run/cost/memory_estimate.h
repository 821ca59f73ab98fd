// SPDX-License-Identifier: Apache-2.0
// Predicted memory of one rank.
#pragma once

#include "accrue/run/cost/rank_cost.h"
#include "accrue/run/fields/accumulation_knobs.h"

namespace accrue {

std::int64_t dtype_bytes(Dtype dtype);
/// Bytes of one element of the gradient sum (K16): at least four under float32, twice that with a compensation term.
std::int64_t gradient_bytes(Dtype dtype, AccumulationDtype accumulation);
/// Resident memory of a rank on a CPU (LibTorch 2.11, x86-64) beyond the planned bytes: libraries, their tables and
/// heap. Measured as the peak of a rank that trains a GPT of one block, 48 wide, minus its planned bytes.
inline constexpr std::int64_t rank_process_bytes = std::int64_t{135800} * 1024;
/// Bytes of the fullest rank (rank_cost.h), or of an undivided model if it cannot be divided as the spec says.
MemoryEstimate estimate_memory(const RunSpec& spec);

}  // namespace accrue
