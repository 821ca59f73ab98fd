// SPDX-License-Identifier: Apache-2.0
// Loss curves of several runs on a common clock, and the distance of the second of a pair from the first. Pure;
// accrue-run compare and the studio call the same functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace accrue {

struct LossPoint {
  std::int64_t update = 0;
  std::int64_t samples = 0;  ///< trained on so far; 0: unknown
  double loss = 0.0;
  bool operator==(const LossPoint&) const = default;
};

struct LossCurve {
  std::string run_id;
  std::string branched_from;      ///< id of the run whose checkpoint it started from; empty: none
  std::vector<LossPoint> points;  ///< in update order
};

/// Prepends the common past to branches: if the original run is among the curves, the branch gets its losses up to the
/// branch's first.
void share_the_past(std::vector<LossCurve>& curves);

/// Clock on which two points are compared. Samples are fairer: runs with different windows have then trained on equally
/// many.
enum class ComparisonClock { samples, updates };
/// "samples", "updates"
std::string_view to_name(ComparisonClock clock);
/// Whether the curve has sample counts; an imported log may lack them.
bool knows_samples(const LossCurve& curve);
/// Returns samples if every curve has them; otherwise updates.
ComparisonClock common_clock(std::span<const LossCurve> curves);
/// Position of a point on a clock.
std::int64_t position_of(const LossPoint& point, ComparisonClock clock);

/// A position at which both runs reported a loss. Of several losses at one position, as from skipped updates, the last
/// counts.
struct SharedPoint {
  std::int64_t at = 0;  ///< on the clock
  double first = 0.0;
  double second = 0.0;
  bool operator==(const SharedPoint&) const = default;
};
/// Returns the points in clock order, without interpolation.
std::vector<SharedPoint> shared_points(const LossCurve& first, const LossCurve& second, ComparisonClock clock);

/// Distance of the second run from the first at their common points.
struct CurveDistance {
  std::int64_t shared_points = 0;
  std::optional<SharedPoint> first_divergence;  ///< the first point at which the losses differ in any bit
  std::optional<SharedPoint> parting;           ///< the point at which the difference exceeds noise: curve_parting
  double noise = 0.0;                           ///< of the difference, as measured by curve_parting at that point
  bool too_few_points = false;                  ///< too few to judge whether they part: too_few_to_judge
  double largest_relative_difference = 0.0;     ///< without non-finite losses
};
CurveDistance distance_of(std::span<const SharedPoint> points);

struct PairComparison {
  ComparisonClock clock = ComparisonClock::samples;
  std::vector<SharedPoint> points;
  CurveDistance distance;
};
/// Computes all of the above for two curves.
PairComparison compare_pair(LossCurve first, LossCurve second);

/// Losses of all runs at a position that at least two of them reported.
struct ComparedPoint {
  std::int64_t at = 0;                        ///< on the clock
  std::vector<std::optional<double>> losses;  ///< in run order
};
/// Returns the points in clock order.
std::vector<ComparedPoint> compared_points(std::span<const LossCurve> curves, ComparisonClock clock);
/// Returns at most `rows` of the points for a table, evenly spread. A point that fewer runs reported than a later one
/// is dropped, so that a gap in a row means that the run had ended.
std::vector<ComparedPoint> points_to_show(std::span<const ComparedPoint> points, std::size_t rows);

}  // namespace accrue
