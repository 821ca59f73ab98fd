// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/batch_size.h"

#include <algorithm>
#include <string>

namespace accrue {
namespace {

/// Samples between two increments, as a real number: ramp samples / ((full - first) / increment). Source: Megatron-LM's
/// RampupBatchsizeNumMicroBatchesCalculator.
double samples_per_increment(const RampUp& ramp) {
  const std::int64_t increments = (ramp.full - ramp.first) / ramp.increment;
  return static_cast<double>(ramp.samples) / static_cast<double>(increments);
}

/// floor(n / samples per increment), the quotient in double as in the original: the place of an increment depends on
/// its rounding, and an integer formula would at times give other updates.
std::int64_t increments_after(const RampUp& ramp, std::int64_t samples) {
  return static_cast<std::int64_t>(static_cast<double>(samples) / samples_per_increment(ramp));
}

}  // namespace

Result<RunningBatch> constant_batch(std::int64_t batch, std::int64_t micro, bool may_be_smaller) {
  const RunningBatch running{batch / micro * micro, batch / micro};
  if (running.micro_steps < 1)
    return fail(ErrorCode::config, "an update of " + std::to_string(batch) +
                                       " samples is smaller than one micro-step of " + std::to_string(micro));
  if (running.samples != batch && !may_be_smaller)
    return fail(ErrorCode::config, "an update of " + std::to_string(batch) +
                                       " samples is not a whole number of micro-steps of " + std::to_string(micro));
  return running;
}

std::string_view ramp_problem(const RampUp& ramp) {
  if (ramp.first < 1 || ramp.increment < 1 || ramp.samples < 1) return "has a number below 1";
  if (ramp.first >= ramp.full) return "starts with the full batch or more";
  if ((ramp.full - ramp.first) % ramp.increment != 0) return "does not come to the full batch in whole increments";
  return {};
}

std::int64_t batch_at(const RampUp& ramp, std::int64_t samples) {
  if (samples > ramp.samples) return ramp.full;
  // B(n) = first + floor(n / samples per increment) * increment.
  return ramp.first + increments_after(ramp, samples) * ramp.increment;
}

UpdatesOfSamples updates_of_samples(std::int64_t samples, std::int64_t full, const std::optional<RampUp>& ramp) {
  UpdatesOfSamples made;
  const std::int64_t last = ramp ? std::min(ramp->samples, samples) : -1;
  while (made.samples <= last) {
    const std::int64_t size = batch_at(*ramp, made.samples);
    // All updates up to the next change have the same size, so they are counted at once: those that begin at s, s + B
    // and so on, up to `alike`, are floor((alike - s) / B) + 1.
    const std::int64_t alike = std::min(next_batch_change(*ramp, made.samples) - 1, last);
    const std::int64_t count = (alike - made.samples) / size + 1;
    made.updates += count;
    made.samples += count * size;
  }
  const std::int64_t rest = samples > made.samples ? (samples - made.samples) / full : 0;
  return {made.updates + rest, made.samples + rest * full};
}

std::int64_t next_batch_change(const RampUp& ramp, std::int64_t samples) {
  const std::int64_t now = batch_at(ramp, samples);
  if (now == ramp.full) return never_changes;
  const auto next = static_cast<double>(increments_after(ramp, samples) + 1);
  // The least n with n / samples per increment >= next, estimated; the two loops find it exactly.
  std::int64_t at =
      std::clamp(static_cast<std::int64_t>(next * samples_per_increment(ramp)), samples + 1, ramp.samples + 1);
  while (at > samples + 1 && batch_at(ramp, at - 1) != now) --at;  // with the rounding of that function
  while (batch_at(ramp, at) == now) ++at;
  return at;
}

}  // namespace accrue
