// SPDX-License-Identifier: Apache-2.0
// Source of the shape and of the initial weights: the GPT-2 report (normal 0.02, the two projections that end on the
// residual stream scaled down by the square root of their number).
#include "models/gpt_model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "models/fused_blocks.h"
#include "models/losses.h"

namespace accrue {

namespace {

std::shared_ptr<Affine> add_affine(torch::nn::Module& parent, const char* name, std::int64_t inputs,
                                   std::int64_t outputs) {
  return parent.register_module(name, std::make_shared<Affine>(inputs, outputs, true));
}

}  // namespace

GptModel::GptModel(const ModelSpec& spec, WeightSource& source)
    : heads_(spec.heads), context_(spec.context), dropout_(spec.dropout) {
  if (spec.width % spec.heads != 0) {
    throw std::invalid_argument("model.width " + std::to_string(spec.width) + " is no multiple of model.heads " +
                                std::to_string(spec.heads));
  }
  token_embedding_ = register_module("token_embedding", std::make_shared<Embedding>(spec.vocabulary, spec.width));
  position_embedding_ = register_module("position_embedding", std::make_shared<Embedding>(spec.context, spec.width));
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < spec.layers; ++i) add_block(*blocks, i, spec.width);
  final_norm_ = register_module("final_norm", std::make_shared<Norm>(spec.width));
  init(source, spec.init);
}

void GptModel::add_block(torch::nn::Module& blocks, std::int64_t index, std::int64_t width) {
  auto block = blocks.register_module(std::to_string(index), std::make_shared<torch::nn::Module>());
  auto norm_1 = block->register_module("norm_1", std::make_shared<Norm>(width));
  auto attention = block->register_module("attention", std::make_shared<torch::nn::Module>());
  auto qkv = add_affine(*attention, "qkv", width, 3 * width);
  auto output = add_affine(*attention, "output", width, width);
  auto norm_2 = block->register_module("norm_2", std::make_shared<Norm>(width));
  auto mlp = block->register_module("mlp", std::make_shared<torch::nn::Module>());
  auto up = add_affine(*mlp, "up", width, 4 * width);
  auto down = add_affine(*mlp, "down", 4 * width, width);
  blocks_.push_back({norm_1->weight, norm_1->bias, qkv->weight, qkv->bias, output->weight, output->bias, norm_2->weight,
                     norm_2->bias, up->weight, up->bias, down->weight, down->bias});
}

void GptModel::init(WeightSource& source, WeightInit rule) {
  if (rule == WeightInit::zeros || rule == WeightInit::values) return;
  constexpr double std = 0.02;
  const double residual_std =
      rule == WeightInit::normal ? std : std / std::sqrt(2.0 * static_cast<double>(blocks_.size()));
  source.normal(token_embedding_->weight, std);
  source.normal(position_embedding_->weight, std);
  for (GptBlockWeights& block : blocks_) {
    source.normal(block.qkv_weight, std);
    source.normal(block.output_weight, residual_std);
    source.normal(block.up_weight, std);
    source.normal(block.down_weight, residual_std);
  }
}

at::Tensor GptModel::embedded(const at::Tensor& tokens) const {
  const std::int64_t positions = tokens.size(1);
  if (positions > context_) {
    throw std::invalid_argument("a sequence of " + std::to_string(positions) + " tokens does not fit model.context " +
                                std::to_string(context_));
  }
  return at::add(at::embedding(token_embedding_->weight, tokens), position_embedding_->weight.slice(0, 0, positions));
}

at::Tensor GptModel::hidden(const at::Tensor& tokens) {
  const double dropout = is_training() ? dropout_ : 0.0;
  at::Tensor x = embedded(tokens);
  if (dropout > 0.0) x = at::dropout(x, dropout, /*train=*/true);
  for (const GptBlockWeights& block : blocks_) {
    if (fused(x)) {
      x = fused_mlp_half(fused_attention_half(x, block, heads_), block);
    } else {
      x = mlp_half(attention_half(x, block, heads_, dropout), block, dropout);
    }
  }
  return x;
}

bool GptModel::fused(const at::Tensor& x) const {
  return !plain_ && can_fuse(x, is_training() ? dropout_ : 0.0);
}

at::Tensor GptModel::logits(const at::Tensor& tokens) {
  return head(hidden(tokens));
}

at::Tensor GptModel::head(const at::Tensor& x) const {
  const at::Tensor normed = at::layer_norm(x, {x.size(-1)}, final_norm_->weight, final_norm_->bias, norm_eps);
  return at::linear(normed, token_embedding_->weight);
}

at::Tensor GptModel::forward(const Batch& batch, const at::Tensor&) {
  return hidden(batch.inputs);
}

LossSum GptModel::loss(const at::Tensor& x, const Batch& batch) {
  if (plain_ || batch.inputs.numel() == 0 || !can_fuse(x, 0.0))
    return {cross_entropy_sum(head(x), batch.targets), batch.items};
  return {fused_head_loss(x, final_norm_->weight, final_norm_->bias, token_embedding_->weight, batch.targets),
          batch.items};
}

}  // namespace accrue
