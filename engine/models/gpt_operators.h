// SPDX-License-Identifier: Apache-2.0
// A decoder's block in plain operators, for every form, dtype and device and for dropout; the reference for the fused
// CPU path, which knows GPT-2's form alone.
// Shapes: B sequences, T positions, D width, H heads of E numbers, G groups of heads that share keys and values, I
// inner width. In GPT-2's form G = H, E = D / H, I = 4 D.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "accrue/parallel/tensor_axis.h"
#include "accrue/run/fields/block_form.h"

namespace accrue {

constexpr double norm_eps = 1e-5;  ///< of the fused functions

/// Parameters of one block, in module order; biases that the form does not have are undefined. With t tensor-parallel
/// ranks, the dims of heads and of the inner layer are divided by t.
struct GptBlockWeights {
  at::Tensor norm_1_weight, norm_1_bias;  // [D]
  /// [(H + 2 G) E, D] and its first dim: rows of queries, keys, values; with groups, of each group its own.
  at::Tensor qkv_weight, qkv_bias;
  at::Tensor output_weight, output_bias;  // [D, H E], [D]
  at::Tensor norm_2_weight, norm_2_bias;  // [D]
  at::Tensor up_weight, up_bias;          // [I, D], [I]; gated [2 I, D], [2 I]: rows of the gate, then of the other
  at::Tensor down_weight, down_bias;      // [D, I], [D]

  /// The last parameter of the block.
  const at::Tensor& last() const { return down_bias.defined() ? down_bias : down_weight; }
};

/// Angles by which rotary positions turn, as cosines and sines in the model's type: [T, 1, E / 2], or [B, T, 1, E / 2]
/// where samples have positions of their own. Undefined: no rotation.
struct Rotation {
  at::Tensor cos;
  at::Tensor sin;
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
  BlockForm form = {};         ///< of the undivided block; its numbers of heads and widths are not read
  std::int64_t positions = 1;  ///< T
  TensorAxis axis = {};
  /// In plain operators: the attention mask, bool or numbers that are added to the scores, [B, 1, 1 or T, T]. If
  /// defined, it replaces `causal`.
  at::Tensor mask = {};
  Rotation rotation = {};
  bool recompute_attention = false;  ///< in plain operators; the fused functions always recompute
  bool causal = true;                ///< a position attends to itself and earlier ones; else to all
};

/// The norm of a form over the last dim. bias: undefined for an RMS norm.
at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BlockForm& form);

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
