// SPDX-License-Identifier: Apache-2.0
// A GPT block in plain operators: every dtype and device, dropout, and the reference that the fused CPU path is
// compared with. Shapes: B sequences, T positions, D width, H heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue {

constexpr double norm_eps = 1e-5;

/// The parameters of one block, in module order.
struct GptBlockWeights {
  at::Tensor norm_1_weight, norm_1_bias;  // [D]
  at::Tensor qkv_weight, qkv_bias;        // [3D, D], [3D]: rows of queries, keys, values
  at::Tensor output_weight, output_bias;  // [D, D], [D]
  at::Tensor norm_2_weight, norm_2_bias;  // [D]
  at::Tensor up_weight, up_bias;          // [4D, D], [4D]
  at::Tensor down_weight, down_bias;      // [D, 4D], [D]
};

/// x + attention(norm_1(x)). Shapes: [B, T, D] -> [B, T, D]. `dropout` is 0 outside training.
at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, std::int64_t heads, double dropout);

/// x + mlp(norm_2(x)). Shapes: [B, T, D] -> [B, T, D].
at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, double dropout);

}  // namespace accrue
