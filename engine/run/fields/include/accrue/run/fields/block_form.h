// SPDX-License-Identifier: Apache-2.0
// What the blocks of a model are made of: its kind's form, with the keys that change it. Parameters, costs and modules
// follow from this one value. Sources: the GPT-2 report; Touvron et al., arXiv:2302.13971 (Llama); Ainslie et al.,
// arXiv:2305.13245 (groups of heads share keys and values).
#pragma once

#include <cstdint>

#include "accrue/run/fields/spec.h"

namespace accrue {

struct BlockForm {
  NormKind norm = NormKind::layer;
  double norm_eps = 1e-5;
  PositionKind positions = PositionKind::learned;
  Activation activation = Activation::gelu_tanh;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;    ///< heads of keys and values, each for heads / kv_heads of queries
  std::int64_t head_width = 1;  ///< numbers of one head
  std::int64_t mlp_width = 1;   ///< of the inner layer
  bool bias = true;
  bool qkv_bias = true;  ///< of queries, keys and values
  bool tied_head = true;

  std::int64_t query_width() const { return heads * head_width; }
  std::int64_t kv_width() const { return kv_heads * head_width; }
  std::int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  /// Groups of heads share keys and values. The rows of the matrix that makes queries, keys and values are then sorted
  /// by group, each with its queries, its keys and its values, as in Megatron-LM; else by queries, keys and values.
  bool has_groups() const { return kv_heads != heads; }
  std::int64_t heads_of_group() const { return heads / kv_heads; }
  /// The inner layer is the product of two, whose matrices are one: rows of the gate, then rows of the other.
  bool gated() const { return activation == Activation::swiglu; }
  bool operator==(const BlockForm&) const = default;
};

BlockForm block_form(const ModelSpec& model);
/// GPT-2's blocks, whatever their sizes; the fused functions know no others.
bool is_gpt2_form(const BlockForm& form);

/// The function after each hidden layer of an mlp.
inline Activation hidden_activation(const ModelSpec& model) {
  return model.activation.value_or(Activation::relu);
}
/// Whether the layers of a linear model or an mlp have a bias.
inline bool layers_have_bias(const ModelSpec& model) {
  return model.bias.value_or(true);
}

}  // namespace accrue
