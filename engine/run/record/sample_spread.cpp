// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/record/sample_spread.h"

#include <algorithm>
#include <cmath>

namespace accrue {
namespace {

/// Continued fraction of the incomplete beta function, by Lentz's method (Numerical Recipes, 6.4).
double beta_fraction(double a, double b, double x) {
  constexpr int most_terms = 300;
  constexpr double tiny = 1e-300;
  const auto guarded = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1.0;
  double d = 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0));
  double result = d;
  for (int m = 1; m <= most_terms; ++m) {
    const double n = m;
    const double even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
    d = 1.0 / guarded(1.0 + even * d);
    c = guarded(1.0 + even / c);
    result *= d * c;
    const double odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
    d = 1.0 / guarded(1.0 + odd * d);
    c = guarded(1.0 + odd / c);
    const double factor = d * c;
    result *= factor;
    if (std::abs(factor - 1.0) < 1e-14) break;
  }
  return result;
}

/// The regularised incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(1.0 - x));
  // The fraction converges fast on one side of the middle; the function is symmetric.
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

}  // namespace

SampleSpread spread_of(std::span<const double> values) {
  SampleSpread spread;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    spread.least = spread.count == 0 ? value : std::min(spread.least, value);
    spread.most = spread.count == 0 ? value : std::max(spread.most, value);
    ++spread.count;
    spread.mean += value;
  }
  if (spread.count == 0) return spread;
  spread.mean /= static_cast<double>(spread.count);
  double squares = 0.0;
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  if (spread.count > 1) spread.deviation = std::sqrt(squares / static_cast<double>(spread.count - 1));
  return spread;
}

std::optional<MeanDifference> difference_of(const SampleSpread& first, const SampleSpread& second) {
  if (first.count < 2 || second.count < 2) return std::nullopt;
  const auto n = static_cast<double>(first.count), m = static_cast<double>(second.count);
  const double a = first.deviation * first.deviation / n;
  const double b = second.deviation * second.deviation / m;
  MeanDifference result{.difference = second.mean - first.mean, .standard_error = std::sqrt(a + b)};
  if (a + b == 0.0) {
    result.freedom = n + m - 2.0;
    result.chance = result.difference == 0.0 ? 1.0 : 0.0;
    return result;
  }
  result.freedom = (a + b) * (a + b) / (a * a / (n - 1.0) + b * b / (m - 1.0));
  const double t = result.difference / result.standard_error;
  result.chance = incomplete_beta(result.freedom / 2.0, 0.5, result.freedom / (result.freedom + t * t));
  return result;
}

}  // namespace accrue
