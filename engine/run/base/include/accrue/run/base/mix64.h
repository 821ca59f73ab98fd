// SPDX-License-Identifier: Apache-2.0
// A counter-based source of random bits: SplitMix64's finaliser over a seed, a stream and an index. Stateless, so data
// and dropout keys need nothing in a checkpoint. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators" (2014).
#pragma once

#include <cstdint>

namespace accrue {

constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

constexpr std::uint64_t mix64(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return mix64(mix64(mix64(seed) ^ stream) ^ index);
}

/// Maps random bits to [0, 1), with 53 bits of precision.
constexpr double unit(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace accrue
