// SPDX-License-Identifier: GPL-3.0-or-later
// Smoothing: a debiased exponential mean over all points of a series, before any reduction. The measured values never
// change. A constant stays that constant from its first point; a non-finite point leaves a gap and does not count.
#pragma once

#include <QString>
#include <cstddef>
#include <cstdint>

#include "column_reducer.h"
#include "series_store.h"

namespace accrue::ui {

/// Mean of the points so far; each has `weight` times the weight of its successor. A non-finite point gives no number
/// and does not count.
class DebiasedMean {
 public:
  static constexpr double largestWeight = 0.999;

  explicit DebiasedMean(double weight);
  double weight() const { return weight_; }
  double next(double value);

 private:
  double weight_;
  double mean_ = 0.0;
  double remaining_ = 1.0;  // weight^count: part of the mean that no point has filled yet
};

class SmoothedSeries {
 public:
  static constexpr double largestWeight = DebiasedMean::largestWeight;

  SmoothedSeries(const SeriesStore& source, double weight);

  double weight() const { return mean_.weight(); }
  const SeriesStore& source() const { return *source_; }
  /// Takes the points since the last call; restarts if the source was truncated.
  void catchUp();
  double value(std::size_t i) const { return values_[i]; }
  std::size_t size() const { return values_.size(); }
  SeriesView view(Clock clock) const { return {&source_->clock(clock), &values_, &pyramid_}; }

 private:
  const SeriesStore* source_;
  DebiasedMean mean_;
  std::uint64_t generation_ = 0;
  Chunked<double> values_;
  MinMaxPyramid pyramid_;
};

/// "s(t) = sum 0.9^k x(t-k) / sum 0.9^k over finite points"
QString smoothingFormula(double weight);
/// Weights for a slider or a key: 0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999.
double nextSmoothing(double weight, int direction);

}  // namespace accrue::ui
