// SPDX-License-Identifier: Apache-2.0
// Parting of two curves: the first point at which their difference exceeds noise. Pure; accrue-run compare and the
// studio call the same function.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace accrue {

struct Parting {
  std::size_t index = 0;
  double difference = 0.0;  ///< second minus first, at that point
  /// Standard deviation of the difference from one point to the next. 0 if the curves were equal before, so that any
  /// difference is real.
  double noise = 0.0;
  bool operator==(const Parting&) const = default;
};

/// Maximum relative difference of two losses that count as equal; another order of summation causes as much.
inline constexpr double rounding_tolerance = 1e-5;
/// Minimum number of points for a judgement.
inline constexpr std::size_t fewest_points = 8;
/// Number of standard deviations above which a difference is more than noise.
inline constexpr double noise_limit = 3.0;

/// Compares values at the same positions, up to the shorter length.
///
/// Curves that begin equal (same seed, same order of samples) part at the first difference beyond rounding. Others
/// differ by chance from the start. They part when the difference leaves its earlier level by more than noise_limit
/// standard deviations and stays away. If that level itself is more than chance, they part at once. They also part if
/// only one is finite. Empty: they do not part.
std::optional<Parting> curve_parting(std::span<const double> first, std::span<const double> second);
/// Whether the curves differ beyond rounding from the first point on, but have fewer than fewest_points points: no
/// judgement is then possible.
bool too_few_to_judge(std::span<const double> first, std::span<const double> second);

}  // namespace accrue
