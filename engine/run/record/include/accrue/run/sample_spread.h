// SPDX-License-Identifier: Apache-2.0
// Several runs of one set-up under several seeds: their mean and spread, and whether two set-ups differ by more than
// chance. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace accrue {

struct SampleSpread {
  std::size_t count = 0;
  double mean = 0.0;
  double deviation = 0.0;  ///< standard deviation of one, from count - 1; 0 for one value
  double least = 0.0;
  double most = 0.0;
};

/// Of the finite values; count 0 if there is none.
SampleSpread spread_of(std::span<const double> values);

/// Welch's test of two means, which assumes neither equal spreads nor equal counts.
struct MeanDifference {
  double difference = 0.0;      ///< second less first
  double standard_error = 0.0;  ///< of it
  double freedom = 0.0;         ///< degrees of freedom, after Welch and Satterthwaite
  double chance = 1.0;          ///< how often equal means give a difference as large, in either direction
};

/// Empty with fewer than two values on a side. Where neither side spreads, any difference has chance 0.
std::optional<MeanDifference> difference_of(const SampleSpread& first, const SampleSpread& second);

/// Below this chance, a difference is not called noise.
inline constexpr double noise_chance = 0.05;

}  // namespace accrue
