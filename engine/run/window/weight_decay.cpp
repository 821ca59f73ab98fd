// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/window/weight_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace accrue {

WeightDecayCurve make_weight_decay(const OptimizerSpec& optimizer, std::int64_t run_samples) {
  return {.style = optimizer.weight_decay_style,
          .start = optimizer.start_weight_decay.value_or(optimizer.weight_decay),
          .end = optimizer.end_weight_decay.value_or(optimizer.weight_decay),
          .samples = std::max<std::int64_t>(run_samples, 1)};
}

double weight_decay_at(const WeightDecayCurve& curve, std::int64_t samples) {
  if (curve.style == WeightDecayStyle::constant || samples > curve.samples) return curve.end;
  // start + y (end - start), with y linear in the share x of the run's samples, or (1 + cos(pi (1 - x))) / 2: both are
  // 0 at its beginning and 1 at its end, and the cosine is flat there. Source: Megatron-LM's
  // OptimizerParamScheduler.get_wd().
  const double done = static_cast<double>(samples) / static_cast<double>(curve.samples);
  const double share =
      curve.style == WeightDecayStyle::linear ? done : 0.5 * (std::cos(std::numbers::pi * (1.0 - done)) + 1.0);
  return curve.start + share * (curve.end - curve.start);
}

}  // namespace accrue
