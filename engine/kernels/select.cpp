// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

namespace accrue {

namespace generic {
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace generic
namespace avx2 {
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace avx2
namespace avx512 {
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace avx512

namespace {

enum class Isa { generic, avx2, avx512 };

Isa detect() {
#ifdef ACCRUE_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return Isa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::generic;
}

Isa chosen() {
  static const Isa isa = detect();
  return isa;
}

template <typename Table>
const Table& pick(const Table& generic, const Table& avx2, const Table& avx512) {
  switch (chosen()) {
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
    case Isa::generic:
      break;
  }
  return generic;
}

}  // namespace

template <>
const FlatKernels<float>& flat_kernels<float>() {
  return pick(generic::flat_float, avx2::flat_float, avx512::flat_float);
}

template <>
const FlatKernels<double>& flat_kernels<double>() {
  return pick(generic::flat_double, avx2::flat_double, avx512::flat_double);
}

template <>
const BlockKernels<float>& block_kernels<float>() {
  return pick(generic::block_float, avx2::block_float, avx512::block_float);
}

template <>
const BlockKernels<double>& block_kernels<double>() {
  return pick(generic::block_double, avx2::block_double, avx512::block_double);
}

const char* kernel_isa() {
  static const char* const names[] = {"generic", "AVX2", "AVX512"};
  return names[static_cast<int>(chosen())];
}

}  // namespace accrue
