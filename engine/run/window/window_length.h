// SPDX-License-Identifier: Apache-2.0
// How many micro-steps a full window has, as the spec says it: by number, or by a target batch.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/batch_size.h"
#include "accrue/run/run_spec.h"

namespace accrue {

/// N where no schedule of lengths says otherwise: accumulation.steps, or what a target global batch comes to. Preflight
/// refuses a target that does not divide, unless it may be rounded.
std::int64_t steps_of(const AccumulationSpec& spec, std::int64_t world);

/// The ramp that accumulation.rampup asks for, up to the batch of a full window; nothing where it does not hold three
/// numbers.
std::optional<RampUp> ramp_of(const AccumulationSpec& spec, std::int64_t world);

}  // namespace accrue
