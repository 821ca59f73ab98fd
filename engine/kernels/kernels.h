// SPDX-License-Identifier: Apache-2.0
// Vector loops that PyTorch's operators do not offer in one pass. The loops are plain C++ in *.inl.h, compiled once per
// instruction set (isa_*.cpp) and chosen once per process by what the CPU has, so one build runs everywhere and a given
// machine always takes the same path. Nothing here allocates, throws or starts threads.
#pragma once

#include <cstdint>

namespace accrue {

struct AdamWStep {
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;
  double correction1 = 1.0;       ///< 1 - beta1^t
  double correction2_root = 1.0;  ///< sqrt(1 - beta2^t)
  double grad_scale = 1.0;
};

struct SgdStep {
  double lr = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  double grad_scale = 1.0;
};

template <typename T>
struct FlatKernels {
  /// Decoupled weight decay, then Adam. params, first and second are updated in place; n elements each.
  void (*adamw)(T* params, const T* grads, T* first, T* second, std::int64_t n, const AdamWStep& step);
  /// buffer may be null where momentum is 0.
  void (*sgd)(T* params, const T* grads, T* buffer, std::int64_t n, const SgdStep& step);
  /// Sum of squares, accumulated in double.
  double (*square_sum)(const T* values, std::int64_t n);
};

template <typename T>
const FlatKernels<T>& flat_kernels();

/// "AVX512", "AVX2" or "generic": the set that was chosen.
const char* kernel_isa();

}  // namespace accrue
