// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/data/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "numpy_sum.h"

namespace accrue {
namespace {

constexpr std::size_t most_datasets = 32766;
constexpr std::int64_t most_blended = std::int64_t{1} << 40;

/// Takes the next sample from the set that is furthest behind; in a tie from the first.
BlendIndex blend(std::span<const double> weights, std::int64_t size, std::span<const std::int64_t> lengths) {
  std::vector<std::int16_t> sets;
  std::vector<std::int64_t> samples, taken(weights.size(), 0);
  sets.reserve(static_cast<std::size_t>(size));
  samples.reserve(static_cast<std::size_t>(size));
  std::vector<std::size_t> open(weights.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  for (std::int64_t i = 0; i < size; ++i) {
    const auto passed = static_cast<double>(std::max<std::int64_t>(i, 1));
    auto next = open.begin();
    double furthest = std::numeric_limits<double>::lowest();
    for (auto each = open.begin(); each != open.end(); ++each) {
      const double behind = weights[*each] * passed - static_cast<double>(taken[*each]);
      if (behind > furthest) {
        furthest = behind;
        next = each;
      }
    }
    const std::size_t set = *next;
    sets.push_back(static_cast<std::int16_t>(set));
    samples.push_back(taken[set]++);
    if (!lengths.empty() && taken[set] == lengths[set]) open.erase(next);
  }
  return {IndexArray(std::move(sets)), IndexArray(std::move(samples))};
}

Result<void> can_blend(std::size_t sets, std::int64_t size) {
  if (sets < 1 || sets > most_datasets)
    return fail(ErrorCode::config, fmt::format("{} datasets cannot be blended", sets), {},
                "Blend between 1 and 32,766 datasets");
  if (size < 1 || size > most_blended)
    return fail(ErrorCode::config, fmt::format("a blend of {} samples cannot be made", size), {},
                "Say how many samples the blend has: weights alone give it no size");
  return {};
}

}  // namespace

Result<std::vector<double>> normalize_weights(std::span<const double> weights) {
  if (auto possible = can_blend(weights.size(), 1); !possible) return tl::unexpected(possible.error());
  for (const double weight : weights)
    if (!(weight > 0) || !std::isfinite(weight))
      return fail(ErrorCode::config, fmt::format("the weight {} of a dataset is not above 0", weight), {},
                  "Leave out a dataset that is to give nothing");
  const double sum = numpy_sum(weights);
  if (!std::isfinite(sum)) return fail(ErrorCode::config, "the weights of the datasets are too large");
  std::vector<double> normal;
  for (const double weight : weights) normal.push_back(weight / sum);
  return normal;
}

Result<BlendSizes> blend_sizes(std::span<const double> weights, std::int64_t samples) {
  auto normal = normalize_weights(weights);
  if (!normal) return tl::unexpected(normal.error());
  if (auto possible = can_blend(weights.size(), samples); !possible) return tl::unexpected(possible.error());
  BlendSizes sizes{.weights = *std::move(normal), .requested = {}, .taken = {}};
  for (const double weight : sizes.weights) {
    const double taken = std::ceil(static_cast<double>(samples) * weight);
    sizes.taken.push_back(static_cast<std::int64_t>(taken));
    sizes.requested.push_back(static_cast<std::int64_t>(std::ceil(taken * (1 + 0.5 / 100))));
    sizes.size += sizes.taken.back();
  }
  return sizes;
}

Result<BlendIndex> build_blend_index(std::span<const double> weights, std::int64_t size) {
  const auto normal = normalize_weights(weights);
  if (!normal) return tl::unexpected(normal.error());
  if (auto possible = can_blend(weights.size(), size); !possible) return tl::unexpected(possible.error());
  return blend(*normal, size, {});
}

Result<BlendIndex> build_exhaustive_blend_index(std::span<const std::int64_t> lengths) {
  std::int64_t size = 0;
  for (const std::int64_t length : lengths) {
    if (length < 1 || length > most_blended || size > most_blended)
      return fail(ErrorCode::config, fmt::format("a dataset of {} samples cannot be blended", length));
    size += length;
  }
  if (auto possible = can_blend(lengths.size(), size); !possible) return tl::unexpected(possible.error());
  std::vector<double> weights;
  for (const std::int64_t length : lengths) weights.push_back(static_cast<double>(length) / static_cast<double>(size));
  return blend(weights, size, lengths);
}

}  // namespace accrue
