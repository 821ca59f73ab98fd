// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/curve_comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "accrue/run/record/curve_parting.h"

namespace accrue {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Whether the next point is at the same position.
bool is_repeated(const std::vector<LossPoint>& points, std::size_t i, ComparisonClock clock) {
  return i + 1 < points.size() && position_of(points[i + 1], clock) <= position_of(points[i], clock);
}

}  // namespace

void share_the_past(std::vector<LossCurve>& curves) {
  for (LossCurve& branch : curves) {
    if (branch.branched_from.empty() || branch.points.empty()) continue;
    const auto parent = std::ranges::find(curves, branch.branched_from, &LossCurve::run_id);
    if (parent == curves.end() || &*parent == &branch) continue;
    const auto end = std::ranges::lower_bound(parent->points, branch.points.front().update, {}, &LossPoint::update);
    branch.points.insert(branch.points.begin(), parent->points.begin(), end);
  }
}

std::string_view to_name(ComparisonClock clock) {
  return clock == ComparisonClock::samples ? "samples" : "updates";
}

bool knows_samples(const LossCurve& curve) {
  return std::ranges::any_of(curve.points, [](const LossPoint& point) { return point.samples != 0; });
}

ComparisonClock common_clock(std::span<const LossCurve> curves) {
  const auto counts = [](const LossCurve& curve) { return curve.points.empty() || knows_samples(curve); };
  return std::ranges::all_of(curves, counts) ? ComparisonClock::samples : ComparisonClock::updates;
}

std::int64_t position_of(const LossPoint& point, ComparisonClock clock) {
  return clock == ComparisonClock::samples ? point.samples : point.update;
}

std::vector<SharedPoint> shared_points(const LossCurve& first, const LossCurve& second, ComparisonClock clock) {
  std::vector<SharedPoint> shared;
  for (std::size_t i = 0, j = 0; i < first.points.size() && j < second.points.size();) {
    const std::int64_t left = position_of(first.points[i], clock);
    const std::int64_t right = position_of(second.points[j], clock);
    if (left < right || is_repeated(first.points, i, clock)) {
      ++i;
    } else if (right < left || is_repeated(second.points, j, clock)) {
      ++j;
    } else {
      shared.push_back({left, first.points[i++].loss, second.points[j++].loss});
    }
  }
  return shared;
}

CurveDistance distance_of(std::span<const SharedPoint> points) {
  CurveDistance distance{.shared_points = static_cast<std::int64_t>(points.size())};
  std::vector<double> first, second;
  first.reserve(points.size());
  second.reserve(points.size());
  for (const SharedPoint& point : points) {
    first.push_back(point.first);
    second.push_back(point.second);
    if (!distance.first_divergence && !same_bits(point.first, point.second)) distance.first_divergence = point;
    const double scale = std::max(std::abs(point.first), std::abs(point.second));
    if (std::isfinite(scale) && scale > 0)
      distance.largest_relative_difference =
          std::max(distance.largest_relative_difference, std::abs(point.second - point.first) / scale);
  }
  if (const auto parting = curve_parting(first, second)) {
    distance.parting = points[parting->index];
    distance.noise = parting->noise;
  }
  distance.too_few_points = too_few_to_judge(first, second);
  return distance;
}

PairComparison compare_pair(LossCurve first, LossCurve second) {
  std::vector<LossCurve> curves;
  curves.push_back(std::move(first));
  curves.push_back(std::move(second));
  share_the_past(curves);
  PairComparison pair{.clock = common_clock(curves)};
  pair.points = shared_points(curves[0], curves[1], pair.clock);
  pair.distance = distance_of(pair.points);
  return pair;
}

std::vector<ComparedPoint> compared_points(std::span<const LossCurve> curves, ComparisonClock clock) {
  std::map<std::int64_t, std::vector<std::optional<double>>> all;
  for (std::size_t run = 0; run < curves.size(); ++run)
    for (const LossPoint& point : curves[run].points) {
      auto& losses = all[position_of(point, clock)];
      losses.resize(curves.size());
      losses[run] = point.loss;
    }
  std::vector<ComparedPoint> points;
  for (auto& [at, losses] : all)
    if (std::ranges::count(losses, true, &std::optional<double>::has_value) > 1)
      points.push_back({at, std::move(losses)});
  return points;
}

std::vector<ComparedPoint> points_to_show(std::span<const ComparedPoint> points, std::size_t rows) {
  std::vector<const ComparedPoint*> full;
  std::ptrdiff_t most = 0;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    const auto reported = std::ranges::count(point->losses, true, &std::optional<double>::has_value);
    if (reported >= most) full.push_back(&*point);
    most = std::max(most, reported);
  }
  std::ranges::reverse(full);
  std::vector<ComparedPoint> shown;
  const std::size_t count = std::min(rows, full.size());
  for (std::size_t row = 0; row < count; ++row)
    shown.push_back(*full[count == 1 ? full.size() - 1 : row * (full.size() - 1) / (count - 1)]);
  return shown;
}

}  // namespace accrue
