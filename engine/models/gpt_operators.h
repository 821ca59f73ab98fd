// SPDX-License-Identifier: Apache-2.0
// A GPT block in plain operators, for every dtype and device and for dropout; the reference for the fused CPU path.
// Shapes: B sequences, T positions, D width, H heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "accrue/parallel/tensor_axis.h"

namespace accrue {

constexpr double norm_eps = 1e-5;

/// Parameters of one block, in module order. With t tensor-parallel ranks, the dims of heads and of the MLP are D / t.
struct GptBlockWeights {
  at::Tensor norm_1_weight, norm_1_bias;  // [D]
  at::Tensor qkv_weight, qkv_bias;        // [3D, D], [3D]: rows of queries, keys, values
  at::Tensor output_weight, output_bias;  // [D, D], [D]
  at::Tensor norm_2_weight, norm_2_bias;  // [D]
  at::Tensor up_weight, up_bias;          // [4D, D], [4D]
  at::Tensor down_weight, down_bias;      // [D, 4D], [D]
};

/// Parameters of a decoder block's attention to the encoder's output.
struct CrossWeights {
  at::Tensor norm_weight, norm_bias;            // [D]
  at::Tensor query_weight, query_bias;          // [D, D], [D]
  at::Tensor key_value_weight, key_value_bias;  // [2D, D], [2D]: rows of keys, values
  at::Tensor output_weight, output_bias;        // [D, D], [D]
};

/// Shape options that the weights do not determine.
struct BlockShape {
  std::int64_t heads = 1;      ///< heads of this rank
  std::int64_t positions = 1;  ///< T
  TensorAxis axis = {};
  /// In plain operators: the attention mask, bool or numbers that are added to the scores, [B, 1, 1 or T, T]. If
  /// defined, it replaces `causal`.
  at::Tensor mask = {};
  bool recompute_attention = false;  ///< in plain operators; the fused functions always recompute
  bool causal = true;                ///< a position attends to itself and earlier ones; else to all
};

/// Returns the tokens that each token sees if documents restart attention. Shapes: starts [B, T] int64 -> [B, 1, T, T]
/// bool.
at::Tensor document_mask(const at::Tensor& starts);

/// Dropout of an activation that all ranks of the axis hold, or of this rank's rows; only for rows do the ranks' masks
/// differ.
at::Tensor dropped(const at::Tensor& x, double dropout, const TensorAxis& axis);

/// x + attention(norm_1(x)). Shapes: [B, T, D] -> [B, T, D], or rows [B T / t, D] of them under sequence parallelism.
/// `dropout` is 0 outside training. Collective: the tensor axis.
at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape, double dropout);

/// x + attention from x's tokens to the encoder's. Shapes: x as above, encoder [B, S, D] or its rows; shape.mask [B, 1,
/// 1, S]. Ranks: as above.
at::Tensor cross_half(const at::Tensor& x, const at::Tensor& encoder, const CrossWeights& weights,
                      const BlockShape& shape, std::int64_t encoder_positions, double dropout);

/// x + mlp(norm_2(x)). Shapes and ranks: as above.
at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape, double dropout);

}  // namespace accrue
