// SPDX-License-Identifier: Apache-2.0
// How many samples an update has over all ranks, as a pure function of the samples trained on so far: constant or
// ramped up. A window's length follows from it, in the plan and in the ranks. Source: Megatron-LM's
// num_microbatches_calculator.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "accrue/run/result.h"

namespace accrue {

/// The batch does not change any more.
inline constexpr std::int64_t never_changes = std::numeric_limits<std::int64_t>::max() / 4;

/// What an update is made of: `samples` in `micro_steps` micro-steps.
struct RunningBatch {
  std::int64_t samples = 0;
  std::int64_t micro_steps = 0;
  bool operator==(const RunningBatch&) const = default;
};

/// `micro`: samples of one micro-step over all ranks. A batch that it does not divide is refused, or made smaller where
/// that is allowed. Errors: config.
Result<RunningBatch> constant_batch(std::int64_t batch, std::int64_t micro, bool may_be_smaller = false);

/// The batch grows in equal steps: it is `full` after `samples` samples.
struct RampUp {
  std::int64_t first = 1;
  std::int64_t increment = 1;
  std::int64_t samples = 1;
  std::int64_t full = 2;
  bool operator==(const RampUp&) const = default;
};

/// Why there is no such ramp; empty where there is.
std::string_view ramp_problem(const RampUp& ramp);
/// The batch of an update that begins after so many samples. The ramp must be one without a problem.
std::int64_t batch_at(const RampUp& ramp, std::int64_t samples);
/// The updates that a number of samples makes by Megatron-LM's rule (update_train_iters): all of a ramp that begin
/// within it, then those that fit as a whole; a last partial one is left out.
struct UpdatesOfSamples {
  std::int64_t updates = 0;
  std::int64_t samples = 0;  ///< that they take: fewer than were given, or more where the ramp is not over
  bool operator==(const UpdatesOfSamples&) const = default;
};
/// `full`: samples of an update that has its full size, at least 1; `ramp` without a problem.
UpdatesOfSamples updates_of_samples(std::int64_t samples, std::int64_t full, const std::optional<RampUp>& ramp);
/// The first number of samples above that one with another batch, or never_changes.
std::int64_t next_batch_change(const RampUp& ramp, std::int64_t samples);

}  // namespace accrue
