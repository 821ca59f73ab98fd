// SPDX-License-Identifier: Apache-2.0
// What a model's parameters and their flat layout add up to, without either: a plan asks for it whatever the size.
#pragma once

#include <cstdint>

#include "accrue/run/run_spec.h"

namespace accrue {

struct ParameterTotals {
  std::int64_t numel = 0;         ///< numbers of all parameters
  std::int64_t padded_numel = 0;  ///< that of their flat layout
  bool operator==(const ParameterTotals&) const = default;
};
/// The sums over parameter_shapes(); the cost does not grow with the layers.
ParameterTotals parameter_totals(const ModelSpec& model, std::int64_t tensor_ranks = 1);

/// The same of what the rank with the most parameters holds, padding included, where the model is divided as the spec
/// says. The share must be one that check_share() finds no fault with; an undivided model otherwise.
ParameterTotals fullest_rank_totals(const ModelSpec& model, const ParallelSpec& parallel);

/// The numbers that a parameter takes in a flat layout.
std::int64_t padded_numel(std::int64_t numel);
/// Buckets of the flat_layout() of parameters that take so many numbers.
std::int64_t bucket_count(std::int64_t padded_numel, std::int64_t bytes_per_element, std::int64_t bucket_bytes,
                          std::int64_t shards = 1);

}  // namespace accrue
