// SPDX-License-Identifier: Apache-2.0
// SampleLock: what stays the same while N, the micro-batch or the data-parallel ranks of a spec are edited, and what
// follows such an edit. Whole numbers only: where none keeps the samples, the nearest values that do are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "accrue/run/run_spec.h"

namespace accrue {

enum class SampleLock {
  none,
  per_update,  ///< N x micro-batch x ranks: N or the micro-batch follows
  in_total,    ///< that times the updates of the run: run.updates follows
};

/// Whether the key is one of the three factors: accumulation.steps, accumulation.micro_batch, parallel.data.
bool is_sample_factor(std::string_view key);

/// What the lock would keep of a spec. 0: nothing, because there is no lock, because the run's length is counted in
/// samples, tokens or epochs and does not depend on the factors, or because the number is beyond counting.
std::int64_t locked_samples(const RunSpec& spec, SampleLock lock);

/// The spec whose factor `key` was edited, with one more value changed so that the samples stay the same. Where the
/// total is kept, that is run.updates. Else it is the micro-batch after N was edited, and N after the micro-batch or
/// the ranks were; if N cannot follow the ranks, the micro-batch does. Empty where no whole number in range keeps the
/// samples.
std::optional<RunSpec> keep_samples(const RunSpec& edited, std::string_view key, SampleLock lock, std::int64_t samples);

/// The values of the factor `key` next below and next above its own with which keep_samples() succeeds, ascending.
std::vector<std::int64_t> nearest_kept(const RunSpec& edited, std::string_view key, SampleLock lock,
                                       std::int64_t samples);

/// All divisors of a positive number, ascending. Above 10^13, divisors larger than four million and their cofactors are
/// omitted.
std::vector<std::int64_t> divisors_of(std::int64_t number);

}  // namespace accrue
