// SPDX-License-Identifier: Apache-2.0
// The same two halves of a GPT block as gpt_operators.h and the loss behind them, each as one autograd function with
// its backward written by hand: few passes over memory, few temporaries, and LayerNorm, GELU and the attention's
// probabilities made again in backward instead of being kept. CPU, float32 or float64, no dropout.
// Shapes: B sequences, T positions, D width, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/gpt_operators.h"

namespace accrue {

/// Whether the fused functions can take x.
bool can_fuse(const at::Tensor& x, double dropout);

/// x + attention(norm_1(x)). Shapes: [B, T, D] -> [B, T, D].
at::Tensor fused_attention_half(const at::Tensor& x, const GptBlockWeights& weights, std::int64_t heads);

/// x + mlp(norm_2(x)). Shapes: [B, T, D] -> [B, T, D].
at::Tensor fused_mlp_half(const at::Tensor& x, const GptBlockWeights& weights);

/// Sum of the cross entropies of norm(x) table^T; targets of -100 count nothing. The gradient is made along with the
/// loss, so only two small matrices wait for backward instead of the logits.
/// Shapes: x [B, T, D], table [V, D], targets [B, T] int64 -> [].
/// Errors: throws std::invalid_argument for a target outside the vocabulary.
at::Tensor fused_head_loss(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                           const at::Tensor& table, const at::Tensor& targets);

}  // namespace accrue
