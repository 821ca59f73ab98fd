// SPDX-License-Identifier: Apache-2.0
// A blend of several data sets: which set gives each sample. Every sample comes from the set that is furthest behind
// its share, so any stretch of the blend has nearly the proportions of the weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/index_array.h"

namespace accrue {

struct BlendIndex {
  IndexArray dataset_index;         ///< int16: which set
  IndexArray dataset_sample_index;  ///< int64: the index of the sample in that set
};

/// Samples that each set must offer, and samples that the blend takes from it: 0.5 % fewer, rounded up.
struct BlendSizes {
  std::vector<double> weights;  ///< normalised; the input of build_blend_index()
  std::vector<std::int64_t> requested;
  std::vector<std::int64_t> taken;
  std::int64_t size = 0;  ///< of the blend: sum of `taken`
};

/// Errors of all functions below: config for no set or more than 32,766, for a weight that is not above 0, and for a
/// size below 1.
Result<std::vector<double>> normalize_weights(std::span<const double> weights);
Result<BlendSizes> blend_sizes(std::span<const double> weights, std::int64_t samples);
Result<BlendIndex> build_blend_index(std::span<const double> weights, std::int64_t size);
/// Takes every sample of every set once. An exhausted set gives no more.
Result<BlendIndex> build_exhaustive_blend_index(std::span<const std::int64_t> lengths);

}  // namespace accrue
