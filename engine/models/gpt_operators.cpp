// SPDX-License-Identifier: Apache-2.0
#include "models/gpt_operators.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
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

/// Operands of one attention. With cross attention S is the number of the encoder's positions.
struct Looks {
  at::Tensor queries, keys, values;  // [B, H, T, D / H], keys and values [B, H, S, D / H]
};

/// softmax(Q K^T / sqrt(D / H) + mask) V, with dropout of the probabilities. Shapes: [B, H, T, D / H]; `causal` counts
/// only without a mask.
at::Tensor looked_up(const Looks& looks, const at::Tensor& mask, double dropout, bool causal) {
  const c10::optional<at::Tensor> added = mask.defined() ? c10::optional<at::Tensor>(mask) : c10::nullopt;
  return at::scaled_dot_product_attention(looks.queries, looks.keys, looks.values, added, dropout,
                                          causal && !mask.defined());
}

/// Attention over the result of unpack(packed), from which backward can recompute it. Its probabilities are those of
/// this rank's heads.
template <typename Unpack>
at::Tensor attended(const at::Tensor& packed, const Unpack& unpack, const BlockShape& shape, double dropout) {
  const bool own_masks = dropout > 0.0 && shape.axis.split();
  const auto attend = [dropout, own_masks, unpack, mask = shape.mask, causal = shape.causal](const at::Tensor& all) {
    if (!own_masks) return looked_up(unpack(all), mask, dropout, causal);
    const auto stream = random_streams().fork(tensor_stream, all.device());
    return looked_up(unpack(all), mask, dropout, causal);
  };
  return shape.recompute_attention ? recomputed(attend, packed, {.draws = dropout > 0.0}) : attend(packed);
}

}  // namespace

at::Tensor document_mask(const at::Tensor& starts) {
  const at::Tensor place = at::arange(starts.size(1), starts.options());
  const at::Tensor seen = place.unsqueeze(0).le(place.unsqueeze(1));  // columns up to the row
  // [T, T] and ([1, 1, T] >= [B, T, 1]) -> [B, 1, T, T], one mask for all heads.
  return seen.logical_and(place.view({1, 1, -1}).ge(starts.unsqueeze(2))).unsqueeze(1);
}

at::Tensor dropped(const at::Tensor& x, double dropout, const TensorAxis& axis) {
  if (dropout == 0.0) return x;
  if (!axis.sequence()) return at::dropout(x, dropout, /*train=*/true);
  const auto stream = random_streams().fork(tensor_stream, x.device());
  return at::dropout(x, dropout, /*train=*/true);
}

// Shapes, with H heads of this rank and E numbers per head: qkv [B, T, 3 H E], split [3, B, H, T, E],
// mixed [B, H, T, E]. The row-parallel product takes [B, T, H E] and returns [B, T, D].
at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape,
                          double dropout) {
  const at::Tensor qkv = column_parallel_linear(normed(x, weights.norm_1_weight, weights.norm_1_bias),
                                                weights.qkv_weight, weights.qkv_bias, shape.axis);
  const at::Tensor split =
      qkv.reshape({-1, shape.positions, 3, shape.heads, qkv.size(-1) / (3 * shape.heads)}).permute({2, 0, 3, 1, 4});
  const at::Tensor mixed = attended(
      split,
      [](const at::Tensor& all) {
        return Looks{all[0], all[1], all[2]};
      },
      shape, dropout);
  auto joined = qkv.sizes().vec();
  joined.back() /= 3;
  const at::Tensor out = row_parallel_linear(mixed.transpose(1, 2).reshape(joined), weights.output_weight,
                                             weights.output_bias, shape.axis);
  return at::add(x, dropped(out, dropout, shape.axis));
}

// Shapes, with H and E as above: query [B, T, H E], key_value [B, S, 2 H E], two [2, B, H, S, E]. Recomputation keeps
// one tensor, so queries, keys and values then travel as one flat row.
at::Tensor cross_half(const at::Tensor& x, const at::Tensor& encoder, const CrossWeights& weights,
                      const BlockShape& shape, std::int64_t encoder_positions, double dropout) {
  const at::Tensor query = column_parallel_linear(normed(x, weights.norm_weight, weights.norm_bias),
                                                  weights.query_weight, weights.query_bias, shape.axis);
  const at::Tensor key_value =
      column_parallel_linear(encoder, weights.key_value_weight, weights.key_value_bias, shape.axis);
  const std::int64_t heads = shape.heads, each = query.size(-1) / heads;
  const auto unpacked = [heads, each, positions = shape.positions, encoder_positions](const at::Tensor& q,
                                                                                      const at::Tensor& kv) {
    const at::Tensor two = kv.reshape({-1, encoder_positions, 2, heads, each}).permute({2, 0, 3, 1, 4});
    return Looks{q.reshape({-1, positions, heads, each}).transpose(1, 2), two[0], two[1]};
  };
  at::Tensor mixed;
  if (shape.recompute_attention) {
    const std::int64_t queries = query.numel();
    mixed = attended(
        at::cat({query.reshape({-1}), key_value.reshape({-1})}),
        [unpacked, queries](const at::Tensor& all) {
          return unpacked(all.narrow(0, 0, queries), all.narrow(0, queries, all.numel() - queries));
        },
        shape, dropout);
  } else {
    mixed = attended(
        query, [unpacked, key_value](const at::Tensor& q) { return unpacked(q, key_value); }, shape, dropout);
  }
  const at::Tensor out = row_parallel_linear(mixed.transpose(1, 2).reshape(query.sizes()), weights.output_weight,
                                             weights.output_bias, shape.axis);
  return at::add(x, dropped(out, dropout, shape.axis));
}

// [B, T, D] -> up [B, T, 4 D / t] -> GELU -> down [B, T, D], added to x.
at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape, double dropout) {
  const at::Tensor hidden = column_parallel_linear(normed(x, weights.norm_2_weight, weights.norm_2_bias),
                                                   weights.up_weight, weights.up_bias, shape.axis);
  const at::Tensor down =
      row_parallel_linear(at::gelu(hidden, "tanh"), weights.down_weight, weights.down_bias, shape.axis);
  return at::add(x, dropped(down, dropout, shape.axis));
}

}  // namespace accrue
