// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the shared-memory all-reduce: element i of every destination becomes source[0][i] op source[1][i] op
// ..., in that order, so the result does not depend on the rank that computes it or on timing.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "accrue/comm/communicator.h"

namespace accrue {

/// Whether reduce_elements() supports the dtype: float64, float32, bfloat16, float16, int64, int32.
bool can_reduce(at::ScalarType dtype);

/// Reduces elements [begin, begin + count). A destination may be one of the sources. 16-bit floats are added in float32
/// and rounded once.
void reduce_elements(at::ScalarType dtype, Reduce op, std::span<const std::byte* const> sources,
                     std::span<std::byte* const> destinations, std::int64_t begin, std::int64_t count);

}  // namespace accrue
