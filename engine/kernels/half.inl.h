// SPDX-License-Identifier: Apache-2.0
// Half precision to float32 and back, with the same bits for all instruction sets. If the CPU has no float16
// instruction, the loops use half_number.inl.h, number by number. Widening is exact; narrowing rounds to the nearest,
// ties to even, in the instruction as in the function.
#pragma once

#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/half_number.inl.h"
#include "kernels/kernels.h"

namespace accrue {
namespace {

void from_half(const std::uint16_t* __restrict from, float* __restrict to, std::int64_t n) {
  std::int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = widened(from[i]);
}

void to_half(const float* __restrict from, std::uint16_t* __restrict to, std::int64_t n) {
  std::int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) to[i] = narrowed(from[i]);
}

void from_bfloat16(const std::uint16_t* __restrict from, float* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = widened_bfloat16(from[i]);
}

void to_bfloat16(const float* __restrict from, std::uint16_t* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = narrowed_bfloat16(from[i]);
}

}  // namespace
}  // namespace accrue
