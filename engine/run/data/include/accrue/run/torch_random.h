// SPDX-License-Identifier: Apache-2.0
// torch.randperm of a seeded CPU generator, draw for draw: Megatron-LM's cyclic loader takes its order from it, and who
// wants the same samples in the same order needs the same numbers. For anything else use mix64.h.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace accrue {

/// The numbers 0, ..., size - 1. Fisher and Yates, from the front.
inline std::vector<std::int64_t> torch_randperm(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937 bits(static_cast<std::uint32_t>(seed));
  // A remainder of 32 bits is even enough for lists that are short beside 2^32; of longer ones PyTorch draws 64.
  const bool is_short = size < std::numeric_limits<std::uint32_t>::max() / 20;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::uint64_t drawn = bits();
    if (!is_short) drawn = drawn << 32 | bits();
    std::swap(order[i], order[i + drawn % (order.size() - i)]);
  }
  return order;
}

}  // namespace accrue
