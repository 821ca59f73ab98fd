// SPDX-License-Identifier: Apache-2.0
// Loss curves of several runs on a clock that all of them have, and how far the second of a pair is from the first.
// Pure; accrue-run compare and the studio ask the same functions.
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
  std::int64_t samples = 0;  ///< trained on so far; 0: not known
  double loss = 0.0;
  bool operator==(const LossPoint&) const = default;
};

struct LossCurve {
  std::string run_id;
  std::string branched_from;      ///< id of the run whose checkpoint it began with; empty: none
  std::vector<LossPoint> points;  ///< in the order of updates
};

/// Before it branched, a run was the one that it branched from: where that one is among the curves, the branch has its
/// losses up to its own first.
void share_the_past(std::vector<LossCurve>& curves);

/// By what two points are the same one. Samples are fairer: runs of different windows have trained on as much there.
enum class ComparisonClock { samples, updates };
/// "samples", "updates"
std::string_view to_name(ComparisonClock clock);
/// False where a log was imported that does not count them.
bool knows_samples(const LossCurve& curve);
/// Samples where every curve knows its own; updates otherwise.
ComparisonClock common_clock(std::span<const LossCurve> curves);
/// Where a point stands on a clock.
std::int64_t position_of(const LossPoint& point, ComparisonClock clock);

/// Where two runs both reported a loss. Of several losses at one position, as of skipped updates, the last counts.
struct SharedPoint {
  std::int64_t at = 0;  ///< on the clock
  double first = 0.0;
  double second = 0.0;
  bool operator==(const SharedPoint&) const = default;
};
/// In the order of the clock; nothing is interpolated.
std::vector<SharedPoint> shared_points(const LossCurve& first, const LossCurve& second, ComparisonClock clock);

/// How far the second run is from the first, where both reported a loss.
struct CurveDistance {
  std::int64_t shared_points = 0;
  std::optional<SharedPoint> first_divergence;  ///< where the two losses first differ in any bit
  std::optional<SharedPoint> parting;           ///< where the difference is more than noise: curve_parting
  double noise = 0.0;                           ///< of the difference, as curve_parting measures it there
  bool too_few_points = false;                  ///< to judge whether they part: too_few_to_judge
  double largest_relative_difference = 0.0;     ///< non-finite losses left out
};
CurveDistance distance_of(std::span<const SharedPoint> points);

struct PairComparison {
  ComparisonClock clock = ComparisonClock::samples;
  std::vector<SharedPoint> points;
  CurveDistance distance;
};
/// All of the above for two curves.
PairComparison compare_pair(LossCurve first, LossCurve second);

/// The losses of all runs at a position that two of them reported at least.
struct ComparedPoint {
  std::int64_t at = 0;                        ///< on the clock
  std::vector<std::optional<double>> losses;  ///< in the order of the runs
};
/// In the order of the clock.
std::vector<ComparedPoint> compared_points(std::span<const LossCurve> curves, ComparisonClock clock);
/// At most `rows` of the points for a table, spread over all. A point that fewer runs reported than a later one is left
/// out: a gap in a row then says that the run had ended.
std::vector<ComparedPoint> points_to_show(std::span<const ComparedPoint> points, std::size_t rows);

}  // namespace accrue
