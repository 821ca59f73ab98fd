// SPDX-License-Identifier: Apache-2.0
// Blocks of 8 KiB are accumulated in the first-level cache and then copied to every destination: each byte of the
// operands is read once and written once, for any number of ranks. The loops are plain; the compiler vectorises them
// twice, for AVX2 and for the x86-64 baseline, and the loader chooses.
#include "shm_sum.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define ACCRUE_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define ACCRUE_VECTOR_CLONES
#endif

namespace accrue {
namespace {

constexpr std::int64_t kBlockBytes = 8192;

ACCRUE_VECTOR_CLONES void add(float* __restrict sum, const float* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
}
ACCRUE_VECTOR_CLONES void add(double* __restrict sum, const double* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
}
ACCRUE_VECTOR_CLONES void add(float* __restrict sum, const float* __restrict a, const float* __restrict b,
                              std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}
ACCRUE_VECTOR_CLONES void add(double* __restrict sum, const double* __restrict a, const double* __restrict b,
                              std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

template <typename Wide, typename T>
void add(Wide* __restrict sum, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += static_cast<Wide>(x[i]);
}

template <typename Wide, typename T>
void add(Wide* __restrict sum, const T* __restrict a, const T* __restrict b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = static_cast<Wide>(a[i]) + static_cast<Wide>(b[i]);
}

/// A NaN on any rank is the result, so a flag or a loss that is not a number cannot be hidden.
template <typename Wide, typename T>
void take_max(Wide* __restrict top, const T* __restrict x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Wide other = static_cast<Wide>(x[i]);
    const bool keep = top[i] > other || top[i] != top[i];
    top[i] = keep ? top[i] : other;
  }
}

template <typename T, typename Wide>
void reduce_typed(Reduce op, std::span<const std::byte* const> sources, std::span<std::byte* const> destinations,
                  std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t block = kBlockBytes / static_cast<std::int64_t>(sizeof(Wide));
  alignas(64) Wide sum[block];
  const auto source = [&](std::size_t r, std::int64_t at) { return reinterpret_cast<const T*>(sources[r]) + at; };
  for (std::int64_t at = begin; at < begin + count; at += block) {
    const std::int64_t n = std::min(block, begin + count - at);
    std::size_t next = 1;
    if (op == Reduce::sum && sources.size() > 1) {
      add(sum, source(0, at), source(1, at), n);
      next = 2;
    } else {
      std::copy_n(source(0, at), n, sum);
    }
    for (std::size_t r = next; r < sources.size(); ++r) {
      if (op == Reduce::sum) {
        add(sum, source(r, at), n);
      } else {
        take_max(sum, source(r, at), n);
      }
    }
    for (std::byte* destination : destinations) {
      T* out = reinterpret_cast<T*>(destination) + at;
      if constexpr (std::is_same_v<T, Wide>) {
        std::memcpy(out, sum, static_cast<std::size_t>(n) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sum[i]);
      }
    }
  }
}

}  // namespace

bool can_reduce(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
    case at::kFloat:
    case at::kBFloat16:
    case at::kHalf:
    case at::kLong:
    case at::kInt:
      return true;
    default:
      return false;
  }
}

void reduce_elements(at::ScalarType dtype, Reduce op, std::span<const std::byte* const> sources,
                     std::span<std::byte* const> destinations, std::int64_t begin, std::int64_t count) {
  switch (dtype) {
    case at::kDouble:
      return reduce_typed<double, double>(op, sources, destinations, begin, count);
    case at::kFloat:
      return reduce_typed<float, float>(op, sources, destinations, begin, count);
    case at::kBFloat16:
      return reduce_typed<c10::BFloat16, float>(op, sources, destinations, begin, count);
    case at::kHalf:
      return reduce_typed<c10::Half, float>(op, sources, destinations, begin, count);
    case at::kLong:
      return reduce_typed<std::int64_t, std::int64_t>(op, sources, destinations, begin, count);
    case at::kInt:
      return reduce_typed<std::int32_t, std::int32_t>(op, sources, destinations, begin, count);
    default:
      throw std::invalid_argument("all_reduce: this dtype has no sum in shared memory");
  }
}

}  // namespace accrue
