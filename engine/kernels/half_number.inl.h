// SPDX-License-Identifier: Apache-2.0
// Converts one number between half precision and float32, on its bits and without branches, by IEEE 754.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace accrue {
namespace {

ACCRUE_HOST_DEVICE std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

ACCRUE_HOST_DEVICE float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// A multiplication moves the exponent from float16's place to float32's, which normalises subnormal numbers.
ACCRUE_HOST_DEVICE float widened(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
  const float finite = float_of(magnitude << 13) * float_of((254u - 15u) << 23);
  const std::uint32_t special = 0x7f800000u | (magnitude & 0x3ffu) << 13 | ((magnitude & 0x3ffu) != 0 ? 0x400000u : 0u);
  return float_of(sign | (magnitude >= 0x7c00u ? special : bits_of(finite)));
}

/// Adding a power of two leaves float16's bits at the end of the sum, rounded.
ACCRUE_HOST_DEVICE std::uint16_t narrowed(float value) {
  const std::uint32_t bits = bits_of(value), sign = bits & 0x80000000u, magnitude = bits ^ sign;
  const std::uint32_t least = 113u << 23;  // the exponent of 2^-14, the smallest normal number
  const std::uint32_t exponent = (magnitude & 0x7f800000u) < least ? least : magnitude & 0x7f800000u;
  const float raise = float_of((exponent > 0x47800000u ? 0x47800000u : exponent) + (13u << 23));
  const std::uint32_t sum = bits_of(float_of(magnitude) + raise);
  const std::uint32_t finite = ((exponent - least) >> 13) + (sum & 0xfffu);
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x1ffu) : 0x7c00u;
  const bool overflows = magnitude >= 0x477ff000u;  // 65520 and above round to infinity
  return static_cast<std::uint16_t>(sign >> 16 | (overflows ? special : finite));
}

ACCRUE_HOST_DEVICE float widened_bfloat16(std::uint16_t half) {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}

ACCRUE_HOST_DEVICE std::uint16_t narrowed_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const bool not_a_number = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(not_a_number ? bits >> 16 | 0x40u : rounded);
}

}  // namespace
}  // namespace accrue
