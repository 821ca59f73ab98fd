// SPDX-License-Identifier: Apache-2.0
// Tables of one instruction set. ACCRUE_ISA names it; this folder's CMakeLists.txt sets the flags. All code here has
// internal linkage, so the linker cannot choose code for a newer CPU as the shared copy.
#pragma once

#include "kernels/attention.inl.h"
#include "kernels/cross_entropy.inl.h"
#include "kernels/flat_update.inl.h"
#include "kernels/gemm.inl.h"
#include "kernels/half.inl.h"
#include "kernels/layer_update.inl.h"
#include "kernels/rows.inl.h"

namespace accrue::ACCRUE_ISA {

extern const HalfKernels half_table;
extern const FlatKernels<float> flat_float;
extern const FlatKernels<double> flat_double;
extern const BlockKernels<float> block_float;
extern const BlockKernels<double> block_double;

const HalfKernels half_table{from_half, to_half, from_bfloat16, to_bfloat16};

template <typename T>
constexpr FlatKernels<T> flat_table() {
  return {adamw_update<T>, sgd_update<T>,       fused_adam_update<T>, lamb_moments<T>,
          lamb_apply<T>,   fused_sgd_update<T>, lars_update<T>,       square_sum<T>};
}
const FlatKernels<float> flat_float = flat_table<float>();
const FlatKernels<double> flat_double = flat_table<double>();

template <typename T>
constexpr BlockKernels<T> block_table() {
  return {layer_norm_forward<T>, layer_norm_apply<T>,   layer_norm_backward<T>, add_bias<T>,
          column_sum<T>,         gelu_forward<T>,       gelu_backward<T>,       attention_scratch<T>,
          attention_forward<T>,  attention_backward<T>, cross_entropy<T>,       gemm_pack<T>,
          gemm_rows<T>,          Tile<T>::rows,         Tile<T>::columns};
}
const BlockKernels<float> block_float = block_table<float>();
const BlockKernels<double> block_double = block_table<double>();

}  // namespace accrue::ACCRUE_ISA
