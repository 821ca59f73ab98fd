// SPDX-License-Identifier: Apache-2.0
#include "window_length.h"

#include <algorithm>
#include <vector>

namespace accrue {

// N = B / (b r), for a global batch of B samples, micro-batches of b and r data-parallel ranks: rounded up (fill), to
// the nearest (round, halves up), or down (decrease, and error, which preflight refuses unless it is whole). At
// least 1.
std::int64_t steps_of(const AccumulationSpec& spec, std::int64_t world) {
  if (spec.knobs.group_length != GroupLength::global_batch) return spec.steps;
  const std::int64_t wanted = spec.knobs.global_batch.value_or(1);
  const std::int64_t micro = std::max<std::int64_t>(1, spec.micro_batch * world);
  const BatchRounding rounding = spec.knobs.batch_rounding.value_or(BatchRounding::error);
  if (rounding == BatchRounding::fill) return (wanted + micro - 1) / micro;
  if (rounding == BatchRounding::round) return std::max<std::int64_t>(1, (wanted + micro / 2) / micro);
  return std::max<std::int64_t>(1, wanted / micro);
}

std::optional<RampUp> ramp_of(const AccumulationSpec& spec, std::int64_t world) {
  const std::vector<std::int64_t>& ramp = spec.rampup;
  if (ramp.size() != 3) return std::nullopt;
  return RampUp{ramp[0], ramp[1], ramp[2], steps_of(spec, world) * spec.micro_batch * world};
}

}  // namespace accrue
