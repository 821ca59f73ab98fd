// SPDX-License-Identifier: Apache-2.0
// Weight decay as a pure function of the samples trained on: constant, or from a start to an end over the run. Source:
// Megatron-LM's OptimizerParamScheduler.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

struct WeightDecayCurve {
  WeightDecayStyle style = WeightDecayStyle::constant;
  double start = 0.0;
  double end = 0.0;
  std::int64_t samples = 1;  ///< at which the end is reached
  bool operator==(const WeightDecayCurve&) const = default;
};

WeightDecayCurve make_weight_decay(const OptimizerSpec& optimizer, std::int64_t run_samples);

/// Weight decay of an update. `samples`: samples of the updates done before it, over all ranks.
double weight_decay_at(const WeightDecayCurve& curve, std::int64_t samples);

}  // namespace accrue
