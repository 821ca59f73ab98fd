// SPDX-License-Identifier: Apache-2.0
#include "memory_estimate.h"

#include <algorithm>

#include "accrue/run/cost/rank_cost.h"

namespace accrue {

std::int64_t dtype_bytes(Dtype dtype) {
  if (dtype == Dtype::float64) return 8;
  return dtype == Dtype::float32 ? 4 : 2;
}

std::int64_t gradient_bytes(Dtype dtype, AccumulationDtype accumulation) {
  const std::int64_t sum = bytes_of_sum(accumulation, dtype_bytes(dtype));
  // A compensated sum has a second number beside each, its rounding error.
  return accumulation == AccumulationDtype::float32_compensated ? 2 * sum : sum;
}

MemoryEstimate estimate_memory(const RunSpec& spec) {
  const std::vector<RankCost> costs = stage_costs(spec);
  // A spec whose division is refused is counted undivided: preflight reports the division itself.
  if (costs.empty()) {
    RunSpec undivided = spec;
    undivided.parallel.tensor = undivided.parallel.pipeline = undivided.parallel.virtual_pipeline = 1;
    return estimate_memory(undivided);
  }
  // A run fits if its fullest rank does.
  const RankCost& fullest = *std::ranges::max_element(costs, {}, &RankCost::total);
  return {.parameters = fullest.parameters,
          .gradients = fullest.gradients,
          .optimizer = fullest.optimizer,
          .activations = fullest.activations,
          .buffers = fullest.buffers,
          .process = fullest.process};
}

}  // namespace accrue
