// SPDX-License-Identifier: Apache-2.0
// Learning rate as a pure function of the schedule position. The studio draws it before the run; the ranks call the
// same function. A position is a tick of the schedule clock, or a sample of a completed update (RateClock). Source of
// the samples clock: Megatron-LM's OptimizerParamScheduler.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

/// A curve with its total resolved.
struct LrCurve {
  ScheduleKind kind = ScheduleKind::constant;
  RateClock clock = RateClock::positions;
  double lr = 1e-3;
  double min_lr = 0.0;
  double init_lr = 0.0;  ///< samples: where the warm-up starts
  double gamma = 1.0;
  double decay_fraction = 0.2;
  DecayTail decay_tail = DecayTail::exponential;
  double warmup = 0.0;     ///< positions; a fraction of total is not rounded
  std::int64_t total = 1;  ///< positions
  bool operator==(const LrCurve&) const = default;
};

LrCurve make_curve(const OptimizerSpec& optimizer, const ScheduleSpec& schedule, std::int64_t derived_total);
/// Returns the same curve between the peak and minimum rates of the embeddings and the output layer.
LrCurve decoupled_curve(LrCurve curve, const OptimizerSpec& optimizer);

/// Returns the rate in force at a position (0: before the first tick).
/// Positions: warm-up rises as (position + 1) / (warmup + 1), so that no update has a rate of zero. Linear, cosine and
/// WSD reach min_lr at total and stay there.
/// Samples: warm-up rises from init_lr by position / warmup, and reaches the peak at its last sample. After total,
/// every kind except constant is at min_lr.
double lr_at(const LrCurve& curve, std::int64_t position);

}  // namespace accrue
