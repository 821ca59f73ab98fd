// SPDX-License-Identifier: Apache-2.0
// Learning rate as a pure function of the schedule position. The studio draws it before the run; the ranks read the
// same function.
#pragma once

#include <cstdint>

#include "accrue/run/run_spec.h"

namespace accrue {

/// A curve with everything resolved (total known).
struct LrCurve {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 1e-3;
  double min_lr = 0.0;
  double gamma = 1.0;
  double decay_fraction = 0.2;
  std::int64_t warmup = 0;  ///< positions
  std::int64_t total = 1;   ///< positions
  bool operator==(const LrCurve&) const = default;
};

LrCurve make_curve(const OptimizerSpec& optimizer, const ScheduleSpec& schedule, std::int64_t derived_total);

/// The rate in force at a position (0 = before the first tick). Warm-up rises as (position + 1) / (warmup + 1), so that
/// no update is spent on a rate of zero; linear, cosine and WSD reach min_lr at total and stay there.
double lr_at(const LrCurve& curve, std::int64_t position);

}  // namespace accrue
