// SPDX-License-Identifier: GPL-3.0-or-later
#include "smoothing.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kit/no_value.h"

namespace accrue::ui {

DebiasedMean::DebiasedMean(double weight) : weight_(std::clamp(weight, 0.0, largestWeight)) {}

double DebiasedMean::next(double value) {
  if (!std::isfinite(value)) return isMeasured(value) ? std::numeric_limits<double>::quiet_NaN() : noValue;
  // mean_t = mean + (x - mean) (1 - w) / (1 - w^t): updates the debiased mean itself, so a constant stays exact.
  remaining_ *= weight_;
  mean_ += (value - mean_) * ((1.0 - weight_) / (1.0 - remaining_));
  return mean_;
}

SmoothedSeries::SmoothedSeries(const SeriesStore& source, double weight)
    : source_(&source), mean_(weight), generation_(source.generation()) {
  catchUp();
}

void SmoothedSeries::catchUp() {
  if (generation_ != source_->generation()) {
    generation_ = source_->generation();
    mean_ = DebiasedMean(mean_.weight());
    values_.truncate(0);
    pyramid_.truncate(values_, 0);
  }
  for (std::size_t i = values_.size(); i < source_->size(); ++i) {
    const double smoothed = mean_.next(source_->value(i));
    values_.push(smoothed);
    pyramid_.append(i, smoothed);
  }
}

QString smoothingFormula(double weight) {
  const QString number = QString::number(weight, 'g', 4);
  return QCoreApplication::translate("Smoothing", "s(t) = Σ %1ᵏ x(t−k) / Σ %1ᵏ, k = 0…t, finite points only")
      .arg(number);
}

double nextSmoothing(double weight, int direction) {
  static constexpr std::array<double, 9> stops = {0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999};
  constexpr double same = 1e-9;
  if (direction >= 0) {
    for (const double stop : stops)
      if (stop > weight + same) return stop;
    return stops.back();
  }
  for (auto stop = stops.rbegin(); stop != stops.rend(); ++stop)
    if (*stop < weight - same) return *stop;
  return stops.front();
}

}  // namespace accrue::ui
