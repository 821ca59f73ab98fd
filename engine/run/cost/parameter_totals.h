// SPDX-License-Identifier: Apache-2.0
// Sums over a model's parameters and their flat layout, computed without building either. A plan needs them for any
// size.
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

struct ParameterTotals {
  std::int64_t numel = 0;         ///< elements of all parameters
  std::int64_t padded_numel = 0;  ///< elements of their flat layout
  bool operator==(const ParameterTotals&) const = default;
};
/// Returns the sums over parameter_shapes(). The cost does not grow with the number of layers.
ParameterTotals parameter_totals(const ModelSpec& model, std::int64_t tensor_ranks = 1);

/// Returns the sums of the rank with the most parameters, padding included. check_share() must accept the share; if it
/// does not, they are those of an undivided model.
ParameterTotals fullest_rank_totals(const ModelSpec& model, const ParallelSpec& parallel);

/// Elements of a parameter in a flat layout, with padding.
std::int64_t padded_numel(std::int64_t numel);
/// Number of buckets of flat_layout() for parameters of `padded_numel` elements.
std::int64_t bucket_count(std::int64_t padded_numel, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                          std::int64_t shards = 1);

}  // namespace accrue
