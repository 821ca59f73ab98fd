// SPDX-License-Identifier: Apache-2.0
// Number of micro-steps of a full window, from the spec: a number or a target batch.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/fields/spec.h"
#include "accrue/run/window/batch_size.h"

namespace accrue {

/// N without a schedule of lengths: accumulation.steps, or the result of a target global batch. Preflight refuses a
/// target that is not divisible, unless rounding is allowed.
std::int64_t steps_of(const AccumulationSpec& spec, std::int64_t world);

/// The ramp of accumulation.rampup, up to the batch of a full window; none if the key does not hold three numbers.
std::optional<RampUp> ramp_of(const AccumulationSpec& spec, std::int64_t world);

}  // namespace accrue
