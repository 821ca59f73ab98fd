// SPDX-License-Identifier: Apache-2.0
// Source of the initial weights: the GPT-2 report (normal 0.02; projections onto the residual stream are divided by the
// square root of their number), and Megatron-LM, which does the same in BERT and T5.
#include "models/transformer_modules.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <memory>

#include "accrue/run/cost/shard_layout.h"

namespace accrue {

namespace {

std::shared_ptr<Affine> add_affine(torch::nn::Module& parent, const char* name, std::int64_t inputs,
                                   std::int64_t outputs, bool bias = true) {
  return parent.register_module(name, std::make_shared<Affine>(inputs, outputs, bias));
}

}  // namespace

// Weights are [outputs, inputs]. A layer that is divided by outputs (qkv, query, key_value, up) is followed by one that
// is divided by inputs (output, down), so a half of a block needs one sum over the ranks. Source: Shoeybi et al.,
// arXiv:1909.08053.
GptBlockWeights add_block(torch::nn::Module& blocks, std::int64_t index, const BlockForm& form,
                          std::int64_t tensor_ranks, CrossWeights* cross) {
  const std::int64_t width = form.width;
  const bool norm_bias = form.norm == NormKind::layer;
  auto block = blocks.register_module(std::to_string(index), std::make_shared<torch::nn::Module>());
  auto norm_1 = block->register_module("norm_1", std::make_shared<Norm>(width, norm_bias));
  auto attention = block->register_module("attention", std::make_shared<torch::nn::Module>());
  auto qkv = add_affine(*attention, form.has_groups() ? "grouped_qkv" : "qkv", width, form.qkv_width() / tensor_ranks,
                        form.qkv_bias);  // [(H + 2 G) E / t, D]
  auto output = add_affine(*attention, "output", form.query_width() / tensor_ranks, width, form.bias);  // [D, H E / t]
  if (cross != nullptr) {
    auto norm = block->register_module("norm_cross", std::make_shared<Norm>(width));
    auto module = block->register_module("cross", std::make_shared<torch::nn::Module>());
    auto query = add_affine(*module, "query", width, width / tensor_ranks);              // [D / t, D]
    auto key_value = add_affine(*module, "key_value", width, 2 * width / tensor_ranks);  // [2 D / t, D]
    auto back = add_affine(*module, "output", width / tensor_ranks, width);              // [D, D / t]
    *cross = {norm->weight,      norm->bias,      query->weight, query->bias,
              key_value->weight, key_value->bias, back->weight,  back->bias};
  }
  auto norm_2 = block->register_module("norm_2", std::make_shared<Norm>(width, norm_bias));
  auto mlp = block->register_module("mlp", std::make_shared<torch::nn::Module>());
  const std::int64_t inner = form.mlp_width / tensor_ranks;
  auto up = form.gated() ? add_affine(*mlp, "gate_up", width, 2 * inner, form.bias)  // [2 I / t, D]
                         : add_affine(*mlp, "up", width, inner, form.bias);          // [I / t, D]
  auto down = add_affine(*mlp, "down", inner, width, form.bias);                     // [D, I / t]
  return {norm_1->weight, norm_1->bias, qkv->weight, qkv->bias, output->weight, output->bias,
          norm_2->weight, norm_2->bias, up->weight,  up->bias,  down->weight,   down->bias};
}

void init_transformer(const ModelSpec& spec, const ModelShare& share, WeightSource& source, torch::nn::Module& module) {
  if (spec.init == WeightInit::zeros || spec.init == WeightInit::values || spec.init == WeightInit::checkpoint) return;
  constexpr double std = 0.02;
  // 0.02 / sqrt(2 N) for the N blocks of a stack. Two projections per block are counted in a T5's decoder too, whose
  // blocks have three, as in Megatron-LM.
  const auto residual_std = [&](std::int64_t blocks) {
    return spec.init == WeightInit::normal ? std : std / std::sqrt(2.0 * static_cast<double>(blocks));
  };
  // Every rank draws the whole model, so its weights do not depend on the division.
  const at::NoGradGuard no_grad;
  auto parameters = module.named_parameters();
  const auto shares = parameter_shares(spec, share);
  auto own = shares.begin();
  for (const ParameterShape& whole : parameter_shapes(spec, share.tensor_ranks)) {
    const bool held = own != shares.end() && own->name == whole.name;
    if (whole.shape.size() > 1) {
      const bool residual = whole.name.ends_with("output.weight") || whole.name.ends_with("down.weight");
      const bool decodes = whole.place == ParameterPlace::decoder_block;
      // The undivided matrix: ranks that do not hold it draw it too, to keep the generators in step.
      at::Tensor drawn = at::empty(whole.shape);
      source.normal(drawn, residual ? residual_std(decodes ? spec.blocks_of_decoder() : spec.layers) : std);
      if (held) parameters[own->name].copy_(part_of(drawn, *own));
    }
    if (held) ++own;
  }
}

}  // namespace accrue
