// SPDX-License-Identifier: Apache-2.0
// Where two curves part: the first point at which their difference is more than noise. Pure; accrue-run compare and the
// studio ask the same function.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace accrue {

struct Parting {
  std::size_t index = 0;
  double difference = 0.0;  ///< second less first, at that point
  /// Standard deviation of the difference from one point to the next; 0 where the curves were equal before, so that any
  /// difference is real.
  double noise = 0.0;
  bool operator==(const Parting&) const = default;
};

/// Two losses at most this far apart, relative to the larger, are equal: sums in another order differ by so much.
inline constexpr double rounding_tolerance = 1e-5;
/// The fewest points from which chance can be judged.
inline constexpr std::size_t fewest_points = 8;
/// How many standard deviations are more than noise.
inline constexpr double noise_limit = 3.0;

/// Of values at the same positions; of different lengths, the shorter counts.
///
/// Curves that begin equal (same seed, same order of samples) part where they first differ by more than rounding.
/// Others differ from the start, by chance: they part where the difference leaves the level that it had before by more
/// than noise_limit standard deviations and stays away; or at once, if that level is itself more than chance. Empty:
/// they do not part. Where only one is finite they do.
std::optional<Parting> curve_parting(std::span<const double> first, std::span<const double> second);
/// They differ from the first point on, by more than rounding, and there are fewer than fewest_points: whether they
/// part cannot be said.
bool too_few_to_judge(std::span<const double> first, std::span<const double> second);

}  // namespace accrue
