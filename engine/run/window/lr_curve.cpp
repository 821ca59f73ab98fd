// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/lr_curve.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accrue {
namespace {

/// How much of the way from the end of the warm-up to total is done, in [0, 1].
double progress(const LrCurve& curve, std::int64_t position) {
  if (position >= curve.total) return 1.0;
  return static_cast<double>(position - curve.warmup) / static_cast<double>(curve.total - curve.warmup);
}

double between(const LrCurve& curve, double share_of_peak) {
  return curve.min_lr + (curve.lr - curve.min_lr) * share_of_peak;
}

}  // namespace

LrCurve make_curve(const OptimizerSpec& optimizer, const ScheduleSpec& schedule, std::int64_t derived_total) {
  return {.kind = schedule.kind,
          .lr = optimizer.lr,
          .min_lr = schedule.min_lr,
          .gamma = schedule.gamma,
          .decay_fraction = schedule.decay_fraction,
          .warmup = schedule.warmup,
          .total = std::max<std::int64_t>(schedule.total.value_or(derived_total), 1)};
}

double lr_at(const LrCurve& curve, std::int64_t position) {
  if (position < curve.warmup)
    return curve.lr * static_cast<double>(position + 1) / static_cast<double>(curve.warmup + 1);
  const std::int64_t after = position - curve.warmup;
  switch (curve.kind) {
    case ScheduleKind::constant:
      return curve.lr;
    case ScheduleKind::linear:
      return between(curve, 1.0 - progress(curve, position));
    case ScheduleKind::cosine:
      return between(curve, 0.5 * (1.0 + std::cos(std::numbers::pi * progress(curve, position))));
    case ScheduleKind::inverse_square_root:
      return std::max(curve.min_lr,
                      curve.lr * std::sqrt(static_cast<double>(curve.warmup + 1) / static_cast<double>(position + 1)));
    case ScheduleKind::wsd: {
      const double decay = curve.decay_fraction * static_cast<double>(curve.total);
      const double left = static_cast<double>(curve.total - position);
      return decay <= 0.0 ? curve.lr : between(curve, std::clamp(left / decay, 0.0, 1.0));
    }
    case ScheduleKind::exponential:
      return std::max(curve.min_lr, curve.lr * std::pow(curve.gamma, static_cast<double>(after)));
  }
  return curve.lr;
}

}  // namespace accrue
