// SPDX-License-Identifier: Apache-2.0
// What one rank will hold, before it holds it.
#pragma once

#include "accrue/run/run_plan.h"

namespace accrue {

std::int64_t dtype_bytes(Dtype dtype);
/// Bytes of one element of the gradient sum (K16): at least four under float32, twice that with a compensation term.
std::int64_t gradient_bytes(Dtype dtype, AccumulationDtype accumulation);
/// Resident memory of a process that is linked to LibTorch's CPU library (2.11, x86-64) and has done nothing: 112,868
/// kB measured.
inline constexpr std::int64_t rank_process_bytes = std::int64_t{112868} * 1024;
/// Bytes of the fullest rank (rank_cost.h); of an undivided model where it cannot be divided as the spec says.
MemoryEstimate estimate_memory(const RunSpec& spec);

}  // namespace accrue
