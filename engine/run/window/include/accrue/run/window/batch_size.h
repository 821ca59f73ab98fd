// SPDX-License-Identifier: Apache-2.0
// Samples of an update over all ranks, as a pure function of the samples trained on so far: constant or ramped up. The
// plan and the ranks derive a window's length from it. Source: Megatron-LM's num_microbatches_calculator.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "accrue/run/base/result.h"

namespace accrue {

/// The batch never changes again.
inline constexpr std::int64_t never_changes = std::numeric_limits<std::int64_t>::max() / 4;

/// Contents of an update: `samples` in `micro_steps` micro-steps.
struct RunningBatch {
  std::int64_t samples = 0;
  std::int64_t micro_steps = 0;
  bool operator==(const RunningBatch&) const = default;
};

/// `micro`: samples of one micro-step over all ranks. A batch that is not a multiple of it is refused, or rounded down
/// if `may_be_smaller`. Errors: config.
Result<RunningBatch> constant_batch(std::int64_t batch, std::int64_t micro, bool may_be_smaller = false);

/// A batch that grows in equal steps until it is `full` after `samples` samples.
struct RampUp {
  std::int64_t first = 1;
  std::int64_t increment = 1;
  std::int64_t samples = 1;
  std::int64_t full = 2;
  bool operator==(const RampUp&) const = default;
};

/// Returns why such a ramp is impossible; empty if it is possible.
std::string_view ramp_problem(const RampUp& ramp);
/// Batch of an update that begins after `samples` samples. The ramp must have no problem.
std::int64_t batch_at(const RampUp& ramp, std::int64_t samples);
/// Updates that a number of samples makes by Megatron-LM's rule (update_train_iters): all updates of the ramp that
/// begin within it, then the whole ones that fit. A last partial one is dropped.
struct UpdatesOfSamples {
  std::int64_t updates = 0;
  std::int64_t samples = 0;  ///< that they take: fewer than given, or more if the ramp is not over
  bool operator==(const UpdatesOfSamples&) const = default;
};
/// `full`: samples of a full-size update, at least 1. `ramp` must have no problem.
UpdatesOfSamples updates_of_samples(std::int64_t samples, std::int64_t full, const std::optional<RampUp>& ramp);
/// The next number of samples at which the batch changes, or never_changes.
std::int64_t next_batch_change(const RampUp& ramp, std::int64_t samples);

}  // namespace accrue
