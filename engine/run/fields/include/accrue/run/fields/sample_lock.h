// SPDX-License-Identifier: Apache-2.0
// SampleLock: the number that stays the same while N, the micro-batch or the data-parallel ranks of a spec are edited,
// and the key that follows. Integers only: if none keeps the samples, the nearest possible values are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "accrue/run/fields/spec.h"

namespace accrue {

enum class SampleLock {
  none,
  per_update,  ///< N x micro-batch x ranks: N or the micro-batch follows
  in_total,    ///< the same times the updates of the run: run.updates follows
};

/// Whether the key is one of the three factors: accumulation.steps, accumulation.micro_batch, parallel.data.
bool is_sample_factor(std::string_view key);

/// Returns the number that the lock would keep. 0: none, because there is no lock, because the run's length is in
/// samples, tokens or epochs and so does not depend on the factors, or because the number is too large.
std::int64_t locked_samples(const RunSpec& spec, SampleLock lock);

/// Returns the spec with one more value changed, so that an edit of the factor `key` keeps the samples. For the total
/// this is run.updates. Otherwise it is the micro-batch after an edit of N, and N after an edit of the micro-batch or
/// the ranks; if N cannot follow the ranks, the micro-batch does. Empty if no integer in range keeps the samples.
std::optional<RunSpec> keep_samples(const RunSpec& edited, std::string_view key, SampleLock lock, std::int64_t samples);

/// Returns the nearest values of the factor `key`, below and above its own, with which keep_samples() succeeds,
/// ascending.
std::vector<std::int64_t> nearest_kept(const RunSpec& edited, std::string_view key, SampleLock lock,
                                       std::int64_t samples);

/// All divisors of a positive number, ascending. Above 10^13, divisors larger than four million and their cofactors are
/// omitted.
std::vector<std::int64_t> divisors_of(std::int64_t number);

}  // namespace accrue
