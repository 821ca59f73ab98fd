// SPDX-License-Identifier: Apache-2.0
// The two halves of a GPT block in gpt_operators.h and the loss after them, each as one autograd function with a
// hand-written backward: few passes over memory and few temporaries. Backward recomputes LayerNorm, GELU and the
// attention's probabilities instead of storing them. CPU, float32 or float64, no dropout.
// Shapes: B sequences, T positions, D width, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/gpt_operators.h"

namespace accrue {

/// Whether the fused functions support x.
bool can_fuse(const at::Tensor& x, double dropout);

/// x + attention(norm_1(x)). Shapes: [B, T, D] -> [B, T, D], or rows [B T / t, D] of them under sequence parallelism.
/// Collective: the tensor axis.
at::Tensor fused_attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape);

/// x + mlp(norm_2(x)). Shapes and ranks: as above.
at::Tensor fused_mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape);

/// Returns the sum of the cross entropies of norm(x) table^T; targets of -100 are ignored. The gradient is computed
/// along with the loss, so backward needs two small matrices instead of the logits. The ranks' tables may have more
/// rows than there are classes; the surplus rows at the end are ignored.
/// Shapes: x [B, T, D] or rows of it under sequence parallelism, table [V / t, D], targets [B, T] int64 -> [], the same
/// on all ranks. Collective: the tensor axis.
/// Errors: throws std::invalid_argument for a target outside the vocabulary.
at::Tensor fused_head_loss(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                           const at::Tensor& table, const at::Tensor& targets, std::int64_t classes,
                           const TensorAxis& axis);

}  // namespace accrue
