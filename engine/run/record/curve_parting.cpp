// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/curve_parting.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace accrue {
namespace {

/// Certainty of a level, in standard deviations of a mean: it is the most unlikely of many.
constexpr double level_limit = 5.0;
/// Points after a candidate that must stay away too, so that it is not an outlier.
constexpr std::size_t confirming_points = 3;

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Computed from the steps between neighbours, which neither a level nor a slow drift enlarges. 0.6745 is the median of
/// a normal distribution's absolute value; a step has twice the variance of a point.
double noise_of(std::span<const double> differences) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < differences.size(); ++i) steps.push_back(std::abs(differences[i] - differences[i - 1]));
  return median(std::move(steps)) / 0.6745 / std::sqrt(2.0);
}

/// The split with the best fit of one level before and one after: the least remaining variance.
std::size_t best_split(std::span<const double> differences) {
  double total = 0.0;
  for (const double each : differences) total += each;
  const auto all = static_cast<double>(differences.size());
  double before = 0.0, best = -1.0;
  std::size_t split = 0;
  for (std::size_t i = 1; i < differences.size(); ++i) {
    before += differences[i - 1];
    const auto left = static_cast<double>(i);
    const double apart = before / left - (total - before) / (all - left);
    const double gain = apart * apart * left * (all - left);
    if (gain <= best) continue;
    best = gain;
    split = i;
  }
  return split;
}

/// The first point that leaves the level and stays away on the same side, allowing one outlier among its followers.
std::optional<std::size_t> leaves_level(std::span<const double> differences, double level, double limit) {
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double off = differences[i] - level;
    if (std::abs(off) <= limit) continue;
    const std::size_t end = std::min(differences.size(), i + 1 + confirming_points);
    std::size_t confirming = 0;
    for (std::size_t next = i + 1; next < end; ++next)
      confirming += std::abs(differences[next] - level) > limit && (differences[next] - level > 0) == (off > 0);
    if (confirming + 1 >= end - i - 1) return i;
  }
  return std::nullopt;
}

bool equal_but_for_rounding(double a, double b) {
  return a == b || std::abs(a - b) <= rounding_tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

std::optional<Parting> curve_parting(std::span<const double> first, std::span<const double> second) {
  std::vector<double> differences;
  std::optional<std::size_t> unequal;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const bool finite = std::isfinite(first[i]);
    if (finite != std::isfinite(second[i])) return Parting{i, second[i] - first[i], noise_of(differences)};
    differences.push_back(finite ? second[i] - first[i] : 0.0);
    if (!unequal && finite && !equal_but_for_rounding(first[i], second[i])) unequal = i;
  }
  if (!unequal) return std::nullopt;
  if (*unequal > 0) return Parting{*unequal, differences[*unequal], 0.0};
  if (differences.size() < fewest_points) return std::nullopt;

  const double noise = noise_of(differences);
  const std::span<const double> all(differences);
  const std::size_t best = best_split(all);
  const std::size_t split = best >= fewest_points ? best : all.size();
  const double level = median({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(split)});
  // A level is not due to chance if it exceeds what the mean of so many points can reach.
  if (std::abs(level) > level_limit * noise / std::sqrt(static_cast<double>(split)))
    return Parting{0, differences.front(), noise};
  const auto left = leaves_level(all, level, noise_limit * noise);
  return left ? std::optional(Parting{*left, differences[*left], noise}) : std::nullopt;
}

bool too_few_to_judge(std::span<const double> first, std::span<const double> second) {
  const std::size_t points = std::min(first.size(), second.size());
  if (points >= fewest_points || curve_parting(first, second)) return false;
  for (std::size_t i = 0; i < points; ++i)
    if (std::isfinite(first[i]) && !equal_but_for_rounding(first[i], second[i])) return true;
  return false;
}

}  // namespace accrue
