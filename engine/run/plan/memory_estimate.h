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
/// Bytes of the fullest rank, which holds so many parameters. gradient_numel is that of its flat layout, padding
/// included.
MemoryEstimate estimate_memory(const RunSpec& spec, const AccumulationKnobs& knobs, std::int64_t parameter_count,
                               std::int64_t gradient_numel);

}  // namespace accrue
