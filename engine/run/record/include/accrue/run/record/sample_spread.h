// SPDX-License-Identifier: Apache-2.0
// Several runs of one set-up with different seeds: their mean and spread, and whether two set-ups differ by more than
// chance. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace accrue {

struct SampleSpread {
  std::size_t count = 0;
  double mean = 0.0;
  double deviation = 0.0;  ///< standard deviation of a single value, from count - 1; 0 for one value
  double least = 0.0;
  double most = 0.0;
};

/// Spread of the finite values; count 0 if there is none.
SampleSpread spread_of(std::span<const double> values);

/// Welch's test of two means, which assumes neither equal variances nor equal counts.
struct MeanDifference {
  double difference = 0.0;      ///< second minus first
  double standard_error = 0.0;  ///< of it
  double freedom = 0.0;         ///< degrees of freedom by Welch and Satterthwaite
  double chance = 1.0;          ///< probability that equal means give a difference as large, in either direction
};

/// Empty with fewer than two values on a side. If neither side has a spread, any difference has chance 0.
std::optional<MeanDifference> difference_of(const SampleSpread& first, const SampleSpread& second);

/// A difference with a lower chance is not noise.
inline constexpr double noise_chance = 0.05;

}  // namespace accrue
