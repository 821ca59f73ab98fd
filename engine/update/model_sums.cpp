// SPDX-License-Identifier: Apache-2.0
#include "update/model_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace accrue {

std::vector<FlatRange> counted_ranges(std::span<const OptimizerSegment> segments, std::int64_t tensor_rank) {
  std::vector<FlatRange> ranges;
  for (const OptimizerSegment& segment : segments)
    if (counts_here(segment.shared, segment.tensor_split, tensor_rank)) ranges.push_back(segment.range);
  return ranges;
}

std::int64_t zeros_in(const at::Tensor& flat, std::span<const FlatRange> ranges) {
  at::Tensor zeros = at::zeros({}, flat.options().dtype(at::kLong));  // read once, at the end
  for (const FlatRange& range : ranges) zeros.add_((flat.narrow(0, range.offset, range.size) == 0).sum());
  return zeros.item<std::int64_t>();
}

}  // namespace accrue
