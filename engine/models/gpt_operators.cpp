// SPDX-License-Identifier: Apache-2.0
#include "models/gpt_operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "accrue/parallel/random_streams.h"
#include "accrue/parallel/recompute.h"
#include "accrue/parallel/tensor_layers.h"

namespace accrue {

namespace {

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, norm_eps);
}

at::Tensor attended(const at::Tensor& split, double dropout) {
  return at::scaled_dot_product_attention(split[0], split[1], split[2], {}, dropout, /*is_causal=*/true);
}

/// Attention's probabilities are this rank's heads'.
at::Tensor attended(const at::Tensor& split, const BlockShape& shape, double dropout) {
  const bool own_masks = dropout > 0.0 && shape.axis.split();
  const auto attend = [dropout, own_masks](const at::Tensor& packed) {
    if (!own_masks) return attended(packed, dropout);
    const auto stream = random_streams().fork(tensor_stream, packed.device());
    return attended(packed, dropout);
  };
  return shape.recompute_attention ? recomputed(attend, split, {.draws = dropout > 0.0}) : attend(split);
}

}  // namespace

at::Tensor dropped(const at::Tensor& x, double dropout, const TensorAxis& axis) {
  if (dropout == 0.0) return x;
  if (!axis.sequence()) return at::dropout(x, dropout, /*train=*/true);
  const auto stream = random_streams().fork(tensor_stream, x.device());
  return at::dropout(x, dropout, /*train=*/true);
}

at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape,
                          double dropout) {
  const at::Tensor qkv = column_parallel_linear(normed(x, weights.norm_1_weight, weights.norm_1_bias),
                                                weights.qkv_weight, weights.qkv_bias, shape.axis);
  const at::Tensor split =
      qkv.reshape({-1, shape.positions, 3, shape.heads, qkv.size(-1) / (3 * shape.heads)}).permute({2, 0, 3, 1, 4});
  const at::Tensor mixed = attended(split, shape, dropout);
  auto joined = qkv.sizes().vec();
  joined.back() /= 3;
  const at::Tensor out = row_parallel_linear(mixed.transpose(1, 2).reshape(joined), weights.output_weight,
                                             weights.output_bias, shape.axis);
  return at::add(x, dropped(out, dropout, shape.axis));
}

at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape, double dropout) {
  const at::Tensor hidden = column_parallel_linear(normed(x, weights.norm_2_weight, weights.norm_2_bias),
                                                   weights.up_weight, weights.up_bias, shape.axis);
  const at::Tensor down =
      row_parallel_linear(at::gelu(hidden, "tanh"), weights.down_weight, weights.down_bias, shape.axis);
  return at::add(x, dropped(down, dropout, shape.axis));
}

}  // namespace accrue
