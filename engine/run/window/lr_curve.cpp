// SPDX-License-Identifier: Apache-2.0
// rate = min_lr + (lr - min_lr) share, with the share of the peak as a function of the progress x in [0, 1]. Source
// of the samples clock: Megatron-LM's OptimizerParamScheduler.
#include "accrue/run/window/lr_curve.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accrue {
namespace {

/// Progress x = (n - w) / (total - w) from the end of the warm-up w to total, in [0, 1].
double progress(const LrCurve& curve, double position) {
  const auto total = static_cast<double>(curve.total);
  return position >= total ? 1.0 : (position - curve.warmup) / (total - curve.warmup);
}

double between(const LrCurve& curve, double share_of_peak) {
  return curve.min_lr + (curve.lr - curve.min_lr) * share_of_peak;
}

/// (1 + cos(pi x)) / 2.
double cosine_share(double done) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * done));
}

/// Fraction of the peak in the decaying part of WSD (warm-up, stable, decay); `left`: remaining fraction of that part,
/// 1 - x. linear 1 - x, cosine as above, exponential 2^(1 - x) - 1, minus_square_root 1 - sqrt(x). All are 1 at x = 0
/// and 0 at x = 1. Source of the four: Megatron-LM's lr_wsd_decay_style.
double tail_share(DecayTail tail, double left) {
  switch (tail) {
    case DecayTail::linear:
      return left;
    case DecayTail::cosine:
      return cosine_share(1.0 - left);
    case DecayTail::exponential:
      return 2.0 * std::pow(0.5, 1.0 - left) - 1.0;
    case DecayTail::minus_square_root:
      return 1.0 - std::sqrt(1.0 - left);
  }
  return left;
}

/// The peak until the last decay_fraction of the run, then down to min_lr at total. With d = decay_fraction total,
/// 1 - x is (total - n) / d, limited to [0, 1]: it counts from the end, so the warm-up does not matter.
double wsd_lr(const LrCurve& curve, double position) {
  const auto total = static_cast<double>(curve.total);
  const double decay = curve.decay_fraction * total;
  if (decay <= 0.0) return curve.lr;
  return between(curve, tail_share(curve.decay_tail, std::clamp((total - position) / decay, 0.0, 1.0)));
}

/// Rate after n samples: init_lr + (lr - init_lr) n / w in a warm-up of w samples, then the kind's curve. As in
/// Megatron-LM the warm-up's last sample already has the peak. Its comparisons are kept too: n <= w, n > total.
double lr_at_sample(const LrCurve& curve, double n) {
  if (curve.warmup > 0.0 && n <= curve.warmup) return curve.init_lr + (curve.lr - curve.init_lr) * n / curve.warmup;
  if (curve.kind == ScheduleKind::constant) return curve.lr;
  if (n > static_cast<double>(curve.total)) return curve.min_lr;
  switch (curve.kind) {
    case ScheduleKind::inverse_square_root:
      // lr sqrt(w / n).
      return std::max(curve.min_lr, curve.lr * std::sqrt(std::max(curve.warmup, 1.0)) / std::sqrt(std::max(n, 1.0)));
    case ScheduleKind::linear:
      return between(curve, 1.0 - progress(curve, n));
    case ScheduleKind::cosine:
      return between(curve, cosine_share(progress(curve, n)));
    case ScheduleKind::wsd:
      return wsd_lr(curve, n);
    case ScheduleKind::constant:
    case ScheduleKind::exponential:  // refused by preflight: gamma is a factor per position
      break;
  }
  return curve.lr;
}

}  // namespace

LrCurve make_curve(const OptimizerSpec& optimizer, const ScheduleSpec& schedule, std::int64_t derived_total) {
  const std::int64_t total = std::max<std::int64_t>(schedule.total.value_or(derived_total), 1);
  return {.kind = schedule.kind,
          .clock = schedule.clock,
          .lr = optimizer.lr,
          .min_lr = schedule.min_lr,
          .init_lr = schedule.init_lr,
          .gamma = schedule.gamma,
          .decay_fraction = schedule.decay_fraction,
          .decay_tail = schedule.decay_tail,
          .warmup = schedule.warmup_fraction ? *schedule.warmup_fraction * static_cast<double>(total)
                                             : static_cast<double>(schedule.warmup),
          .total = total};
}

LrCurve decoupled_curve(LrCurve curve, const OptimizerSpec& optimizer) {
  curve.lr = optimizer.decoupled_lr.value_or(curve.lr);
  curve.min_lr = optimizer.decoupled_min_lr.value_or(curve.min_lr);
  return curve;
}

double lr_at(const LrCurve& curve, std::int64_t position) {
  const auto at = static_cast<double>(position);
  if (curve.clock == RateClock::samples) return lr_at_sample(curve, at);
  // lr (p + 1) / (w + 1) for p < w: above 0 at the first position, and the peak at p = w, the first after the warm-up.
  if (at < curve.warmup) return curve.lr * (at + 1.0) / (curve.warmup + 1.0);
  switch (curve.kind) {
    case ScheduleKind::constant:
      return curve.lr;
    case ScheduleKind::linear:
      return between(curve, 1.0 - progress(curve, at));
    case ScheduleKind::cosine:
      return between(curve, cosine_share(progress(curve, at)));
    case ScheduleKind::inverse_square_root:
      // lr sqrt((w + 1) / (p + 1)): the peak at the end of the warm-up.
      return std::max(curve.min_lr, curve.lr * std::sqrt((curve.warmup + 1.0) / (at + 1.0)));
    case ScheduleKind::wsd:
      return wsd_lr(curve, at);
    case ScheduleKind::exponential:
      return std::max(curve.min_lr, curve.lr * std::pow(curve.gamma, at - curve.warmup));
  }
  return curve.lr;
}

}  // namespace accrue
