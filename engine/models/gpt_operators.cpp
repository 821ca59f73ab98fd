// SPDX-License-Identifier: Apache-2.0
#include "models/gpt_operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

namespace accrue {

namespace {

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, norm_eps);
}

at::Tensor dropped(const at::Tensor& x, double dropout) {
  return dropout > 0.0 ? at::dropout(x, dropout, /*train=*/true) : x;
}

}  // namespace

at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, std::int64_t heads, double dropout) {
  const auto batch = x.size(0), positions = x.size(1), width = x.size(2);
  const at::Tensor qkv =
      at::linear(normed(x, weights.norm_1_weight, weights.norm_1_bias), weights.qkv_weight, weights.qkv_bias);
  const at::Tensor split = qkv.view({batch, positions, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  const at::Tensor mixed =
      at::scaled_dot_product_attention(split[0], split[1], split[2], {}, dropout, /*is_causal=*/true);
  const at::Tensor joined = mixed.transpose(1, 2).reshape({batch, positions, width});
  return at::add(x, dropped(at::linear(joined, weights.output_weight, weights.output_bias), dropout));
}

at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, double dropout) {
  const at::Tensor hidden =
      at::linear(normed(x, weights.norm_2_weight, weights.norm_2_bias), weights.up_weight, weights.up_bias);
  const at::Tensor down = at::linear(at::gelu(hidden, "tanh"), weights.down_weight, weights.down_bias);
  return at::add(x, dropped(down, dropout));
}

}  // namespace accrue
