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

/// float16 has 5 bits of exponent (bias 15) and 10 of fraction, float32 8 (bias 127) and 23. A multiplication by
/// 2^(127 - 15) moves the exponent from one bias to the other, and normalises subnormal numbers by the way. Infinities
/// keep the largest exponent. A NaN keeps its payload and becomes quiet, as in the CPU's instruction.
ACCRUE_HOST_DEVICE float widened(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffu, sign = (half & 0x8000u) << 16;
  const float finite = float_of(magnitude << 13) * float_of((254u - 15u) << 23);
  const std::uint32_t special = 0x7f800000u | (magnitude & 0x3ffu) << 13 | ((magnitude & 0x3ffu) != 0 ? 0x400000u : 0u);
  return float_of(sign | (magnitude >= 0x7c00u ? special : bits_of(finite)));
}

/// For a number of exponent e, 2^(e + 13) has the spacing 2^(e + 13 - 23) = 2^(e - 10), that of float16 at e. So adding
/// it makes the addition itself round to float16, to the nearest and ties to even, and leaves the fraction with its
/// leading 1 in the last bits. That 1, or a carry, adds one to the exponent field below.
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

/// bfloat16 is the upper half of a float32.
ACCRUE_HOST_DEVICE float widened_bfloat16(std::uint16_t half) {
  return float_of(static_cast<std::uint32_t>(half) << 16);
}

/// Half a unit of the last kept bit, less one, plus that bit: carries if above the middle, or at it and odd.
ACCRUE_HOST_DEVICE std::uint16_t narrowed_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  // Rounding could carry a NaN into infinity; bit 6 keeps it a quiet NaN.
  const bool not_a_number = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(not_a_number ? bits >> 16 | 0x40u : rounded);
}

}  // namespace
}  // namespace accrue
