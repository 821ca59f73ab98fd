// SPDX-License-Identifier: Apache-2.0
#include "models/gpt_operators.h"

#include <ATen/TensorOperators.h>
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
#include "models/llama_functions.h"

namespace accrue {

namespace {

/// Operands of one attention. With cross attention S is the number of the encoder's positions.
struct Looks {
  at::Tensor queries, keys, values;  // [B, H, T, D / H], keys and values [B, H, S, D / H]
};

/// softmax(Q K^T / sqrt(D / H) + mask) V, with dropout of the probabilities. Shapes: [B, H, T, D / H]; `causal` counts
/// only without a mask.
at::Tensor looked_up(const Looks& looks, const at::Tensor& mask, double dropout, bool causal) {
  const c10::optional<at::Tensor> added = mask.defined() ? c10::optional<at::Tensor>(mask) : c10::nullopt;
  const bool groups = looks.keys.size(1) != looks.queries.size(1);
  return at::scaled_dot_product_attention(looks.queries, looks.keys, looks.values, added, dropout,
                                          causal && !mask.defined(), c10::nullopt, groups);
}

/// Turns each pair (i, i + E / 2) of a head's numbers by its position's angle. Shapes: x [B, T, H, E]. Source: Su et
/// al., arXiv:2104.09864; the pairs are those of Hugging Face's Llama.
at::Tensor rotated(const at::Tensor& x, const Rotation& by) {
  if (!by.cos.defined()) return x;
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return at::cat({a * by.cos - b * by.sin, b * by.cos + a * by.sin}, -1);
}

/// Queries, keys and values [B, T, (H + 2 G) E] of this rank as the columns of the product stand: by kind, or by group.
/// They are turned as they stand, so that attention's result stands like them and is joined without a copy.
Looks unpacked(const at::Tensor& qkv, const BlockShape& shape) {
  const auto looks = [&shape](const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values) {
    return Looks{rotated(queries, shape.rotation).transpose(1, 2), rotated(keys, shape.rotation).transpose(1, 2),
                 values.transpose(1, 2)};
  };
  if (!shape.form.has_groups()) {
    const std::int64_t each = qkv.size(-1) / (3 * shape.heads);
    const at::Tensor split = qkv.reshape({-1, shape.positions, 3, shape.heads, each});
    return looks(split.select(2, 0), split.select(2, 1), split.select(2, 2));
  }
  const std::int64_t queries = shape.form.heads_of_group(), each = shape.form.head_width;
  // [B, T, G, H / G + 2, E]
  const at::Tensor split = qkv.reshape({-1, shape.positions, shape.heads / queries, queries + 2, each});
  return looks(split.narrow(3, 0, queries).reshape({-1, shape.positions, shape.heads, each}), split.select(3, queries),
               split.select(3, queries + 1));
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

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const BlockForm& form) {
  if (form.norm == NormKind::layer) return at::layer_norm(x, {x.size(-1)}, weight, bias, form.norm_eps);
  return rms_norm(x, weight, form.norm_eps);
}

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

// Shapes, with H heads of this rank: qkv [B, T, (H + 2 G) E], mixed [B, H, T, E]. The row-parallel product takes
// [B, T, H E] and returns [B, T, D].
at::Tensor attention_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape,
                          double dropout) {
  const at::Tensor qkv = column_parallel_linear(normed(x, weights.norm_1_weight, weights.norm_1_bias, shape.form),
                                                weights.qkv_weight, weights.qkv_bias, shape.axis);
  const at::Tensor mixed = attended(
      qkv, [shape](const at::Tensor& all) { return unpacked(all, shape); }, shape, dropout);
  auto joined = qkv.sizes().vec();
  joined.back() = weights.output_weight.size(1);
  const at::Tensor out = row_parallel_linear(mixed.transpose(1, 2).reshape(joined), weights.output_weight,
                                             weights.output_bias, shape.axis);
  return at::add(x, dropped(out, dropout, shape.axis));
}

// Shapes, with H and E as above: query [B, T, H E], key_value [B, S, 2 H E], two [2, B, H, S, E]. Recomputation keeps
// one tensor, so queries, keys and values then travel as one flat row.
at::Tensor cross_half(const at::Tensor& x, const at::Tensor& encoder, const CrossWeights& weights,
                      const BlockShape& shape, std::int64_t encoder_positions, double dropout) {
  const at::Tensor query = column_parallel_linear(normed(x, weights.norm_weight, weights.norm_bias, shape.form),
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

namespace {

/// The inner layer's numbers after its function. Shapes: [B, T, I / t], or gated [B, T, 2 I / t] -> [B, T, I / t].
at::Tensor active(const at::Tensor& hidden, const BlockForm& form) {
  if (form.gated()) return swiglu(hidden);
  return at::gelu(hidden, form.activation == Activation::gelu_tanh ? "tanh" : "none");
}

}  // namespace

// [B, T, D] -> up [B, T, I / t] -> its function -> down [B, T, D], added to x.
at::Tensor mlp_half(const at::Tensor& x, const GptBlockWeights& weights, const BlockShape& shape, double dropout) {
  const at::Tensor hidden = column_parallel_linear(normed(x, weights.norm_2_weight, weights.norm_2_bias, shape.form),
                                                   weights.up_weight, weights.up_bias, shape.axis);
  const at::Tensor down =
      row_parallel_linear(active(hidden, shape.form), weights.down_weight, weights.down_bias, shape.axis);
  return at::add(x, dropped(down, dropout, shape.axis));
}

}  // namespace accrue
