// SPDX-License-Identifier: Apache-2.0
// torch.randperm of a seeded CPU generator, draw for draw. Megatron-LM's cyclic loader takes its order from it, so
// equal samples in equal order need the same numbers. Use mix64.h for anything else.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace accrue {

/// PyTorch shuffles longer lists differently: the remainder of a 32-bit number is uniform enough only for lists that
/// are short compared with 2^32.
inline constexpr std::int64_t long_randperm = std::numeric_limits<std::uint32_t>::max() / 20;

/// Permutes the numbers 0, ..., size - 1: Fisher-Yates from the front. A long list is shuffled inside out, with 64-bit
/// draws.
inline std::vector<std::int64_t> torch_randperm(std::int64_t size, std::uint64_t seed,
                                                std::int64_t long_from = long_randperm) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937 bits(static_cast<std::uint32_t>(seed));
  if (size < long_from) {
    for (std::size_t i = 0; i + 1 < order.size(); ++i) std::swap(order[i], order[i + bits() % (order.size() - i)]);
    return order;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t high = bits();
    const std::size_t taken = (high << 32 | bits()) % (i + 1);
    order[i] = order[taken];
    order[taken] = static_cast<std::int64_t>(i);
  }
  return order;
}

}  // namespace accrue
