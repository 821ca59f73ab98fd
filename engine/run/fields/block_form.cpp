// SPDX-License-Identifier: Apache-2.0
#include "accrue/run/fields/block_form.h"

#include <algorithm>

namespace accrue {

BlockForm block_form(const ModelSpec& model) {
  const bool llama = model.kind == ModelKind::llama;
  BlockForm form{.width = model.width, .heads = model.heads};
  form.kv_heads = model.kv_heads.value_or(model.heads);
  form.head_width = model.head_width.value_or(model.width / std::max<std::int64_t>(1, model.heads));
  form.norm = model.norm.value_or(llama ? NormKind::rms : NormKind::layer);
  form.norm_eps = model.norm_eps.value_or(1e-5);
  form.positions = model.positions.value_or(llama ? PositionKind::rotary : PositionKind::learned);
  form.activation = model.activation.value_or(llama ? Activation::swiglu : Activation::gelu_tanh);
  form.bias = model.bias.value_or(!llama);
  form.qkv_bias = model.qkv_bias.value_or(form.bias);
  form.tied_head = model.tied_head.value_or(!llama);
  // Three matrices of 8 D / 3 have as many numbers as two of 4 D: Llama's rule, rounded up to a multiple of 64.
  constexpr std::int64_t multiple = 64;
  const std::int64_t gated = (8 * model.width / 3 + multiple - 1) / multiple * multiple;
  form.mlp_width = model.mlp_width.value_or(form.gated() ? gated : 4 * model.width);
  return form;
}

bool is_gpt2_form(const BlockForm& form) {
  BlockForm plain{.width = form.width, .heads = form.heads, .kv_heads = form.heads};
  plain.head_width = form.width / std::max<std::int64_t>(1, form.heads);
  plain.mlp_width = 4 * form.width;
  return form == plain;
}

}  // namespace accrue
