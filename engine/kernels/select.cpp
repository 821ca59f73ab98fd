// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

#include <algorithm>
#include <atomic>

namespace accrue {

namespace generic {
extern const HalfKernels half_table;
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace generic
namespace avx2 {
extern const HalfKernels half_table;
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace avx2
namespace avx512 {
extern const HalfKernels half_table;
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;
}  // namespace avx512

namespace {

/// The flags of isa_avx512.cpp (CMakeLists.txt) imply BW and CD as well. Every CPU with DQ and VL has those too; Xeon
/// Phi, which has F and CD, has neither and is kept out.
InstructionSet detect() {
#ifdef ACCRUE_X86_KERNELS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::generic;
}

/// Read by the threads of tasks too, hence atomic. Relaxed is enough: it is set before the first kernel runs
/// (Rendezvous::join()).
std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set = detect();
  return set;
}

bool is_intel() {
#ifdef ACCRUE_X86_KERNELS
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

std::atomic<bool>& tiles_allowed() {
  static std::atomic<bool> allowed = !is_intel();
  return allowed;
}

template <typename Table>
const Table& pick(const Table& generic, const Table& avx2, const Table& avx512) {
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return avx512;
    case InstructionSet::avx2:
      return avx2;
    case InstructionSet::generic:
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

const HalfKernels& half_kernels() {
  return pick(generic::half_table, avx2::half_table, avx512::half_table);
}

template <>
const BlockKernels<float>& block_kernels<float>() {
  return pick(generic::block_float, avx2::block_float, avx512::block_float);
}

template <>
const BlockKernels<double>& block_kernels<double>() {
  return pick(generic::block_double, avx2::block_double, avx512::block_double);
}

InstructionSet instruction_set() {
  return chosen().load(std::memory_order_relaxed);
}

void limit_instruction_set(InstructionSet most) {
  chosen().store(std::min(instruction_set(), most), std::memory_order_relaxed);
}

bool tiles_pay() {
  return instruction_set() == InstructionSet::avx512 && tiles_allowed().load(std::memory_order_relaxed);
}

void leave_products_to_library() {
  tiles_allowed().store(false, std::memory_order_relaxed);
}

const char* name_of(InstructionSet set) {
  static const char* const names[] = {"generic", "AVX2", "AVX512"};
  return names[static_cast<int>(set)];
}

}  // namespace accrue
