// SPDX-License-Identifier: Apache-2.0
// One vector register as the compiler's own vector type, so the same source serves SSE, AVX2, AVX-512 and NEON.
// Included only in isa_*.cpp, whose flags determine the width.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#define ACCRUE_VECTOR_BYTES 64
#elif defined(__AVX__)
#define ACCRUE_VECTOR_BYTES 32
#else
#define ACCRUE_VECTOR_BYTES 16
#endif

#define ACCRUE_INLINE inline __attribute__((always_inline))

namespace accrue {
namespace {

template <typename T>
struct VecOf;
template <>
struct VecOf<float> {
  typedef float type __attribute__((vector_size(ACCRUE_VECTOR_BYTES)));
  typedef std::int32_t bits __attribute__((vector_size(ACCRUE_VECTOR_BYTES)));
};
template <>
struct VecOf<double> {
  typedef double type __attribute__((vector_size(ACCRUE_VECTOR_BYTES)));
  typedef std::int64_t bits __attribute__((vector_size(ACCRUE_VECTOR_BYTES)));
};

/// Integers as wide as T, one per lane: the masks of shuffles and comparisons.
template <typename T>
using Lanes = typename VecOf<T>::bits;

template <typename T>
using Vec = typename VecOf<T>::type;

/// Numbers of one vector: 16, 8 or 4 floats, half as many doubles.
template <typename T>
constexpr std::int64_t lanes = ACCRUE_VECTOR_BYTES / static_cast<std::int64_t>(sizeof(T));

/// A copy, because rows need not begin at a multiple of the vector's size.
template <typename T>
ACCRUE_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <typename T>
ACCRUE_INLINE void store(T* to, Vec<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// All lanes equal. Zero is subtracted, not added, to keep the sign of -0: -0 - 0 is -0, but -0 + 0 is 0.
template <typename T>
ACCRUE_INLINE Vec<T> splat(T value) {
  return value - Vec<T>{};
}

template <typename T>
ACCRUE_INLINE Lanes<T> lane_numbers() {
  Lanes<T> numbers;
  for (int i = 0; i < static_cast<int>(lanes<T>); ++i) numbers[i] = i;
  return numbers;
}

/// Transposes a square of vectors: swaps v[i][j] and v[j][i]. Each round interleaves the upper and the lower half like
/// a shuffled deck; after log2(lanes) rounds rows have become columns.
template <typename T>
ACCRUE_INLINE void transpose(Vec<T> (&v)[lanes<T>]) {
  constexpr int n = static_cast<int>(lanes<T>);
  Lanes<T> low, high;
  for (int i = 0; i < n; ++i) {
    low[i] = i / 2 + (i % 2) * n;
    high[i] = low[i] + n / 2;
  }
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
    Vec<T> next[n];
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = __builtin_shuffle(v[i], v[i + n / 2], low);
      next[2 * i + 1] = __builtin_shuffle(v[i], v[i + n / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) v[i] = next[i];
  }
}

/// The first `count` lanes from memory, the others zero.
template <typename T>
ACCRUE_INLINE Vec<T> load_part(const T* from, std::int64_t count) {
  Vec<T> v{};
  for (std::int64_t i = 0; i < count; ++i) v[i] = from[i];
  return v;
}

/// Stores the first `count` lanes.
template <typename T>
ACCRUE_INLINE void store_part(T* to, Vec<T> v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = v[i];
}

/// Sum of the lanes in order. Called once per row, so a tree of shuffles would gain nothing.
template <typename T>
ACCRUE_INLINE T lane_sum(Vec<T> v) {
  T total = 0;
  for (std::int64_t i = 0; i < lanes<T>; ++i) total += v[i];
  return total;
}

/// Calls step(offset, load, store) for each vector of a row of n; the last one may be partial.
/// load(pointer) and store(pointer, vector) act at that offset.
template <typename T, typename Step>
ACCRUE_INLINE void along_row(std::int64_t n, const Step& step) {
  std::int64_t at = 0;
  for (; at + lanes<T> <= n; at += lanes<T>) {
    step(
        [at](const T* row) __attribute__((always_inline)) { return load<T>(row + at); },
        [at](T * row, Vec<T> v) __attribute__((always_inline)) { store<T>(row + at, v); });
  }
  if (at < n) {
    const std::int64_t rest = n - at;
    step([at, rest](const T* row) { return load_part<T>(row + at, rest); },
         [at, rest](T* row, Vec<T> v) { store_part<T>(row + at, v, rest); });
  }
}

/// e^x in about 1 ulp; 0 below -87.3 and e^88.3 above that. Cephes' reduction and polynomial: x = n ln 2 + r with
/// |r| <= ln 2 / 2, and e^x = 2^n e^r with e^r = 1 + r + r^2 p(r). Between the bounds n is from -126 to 127, so 2^n is
/// a normal number that its exponent bits alone make.
ACCRUE_INLINE Vec<float> exponential(Vec<float> x) {
  using Bits = Lanes<float>;
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec<float> lowest = splat(-87.3f), highest = splat(88.3f);
  const auto vanishes = x < lowest;
  x = vanishes ? lowest : x;
  x = x > highest ? highest : x;
  const Vec<float> shifted = x * 1.44269504088896341f + magic;
  const Vec<float> n = shifted - magic;
  // ln 2 in two parts (Cody and Waite): n times the first is exact, as it has few bits, so r keeps the digits of x.
  const Vec<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec<float> p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  Bits exponent;
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  // n stands in the last bits of x / ln 2 + magic, whose own bits are 0x4B400000. n + 127 is the exponent of 2^n.
  exponent = (exponent - 0x4B400000 + 127) << 23;
  Vec<float> power;
  __builtin_memcpy(&power, &exponent, sizeof power);
  return vanishes ? Vec<float>{} : p * power;
}

/// float64 serves exact comparisons, not speed: calls the library's exp per lane.
ACCRUE_INLINE Vec<double> exponential(Vec<double> x) {
  Vec<double> y{};
  for (std::int64_t i = 0; i < lanes<double>; ++i) y[i] = std::exp(x[i]);
  return y;
}

}  // namespace
}  // namespace accrue
