// SPDX-License-Identifier: Apache-2.0
// Source: Megatron-LM's BertModel, BertLMHead and Pooler (megatron-core 0.12.0). Blocks use GELU in its tanh form, like
// Megatron-LM's fused one; the head's is exact.
// Shapes: B samples, T positions, D width, V vocabulary, t tensor-parallel ranks.
#include "models/bert_model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/parallel/tensor_layers.h"
#include "models/losses.h"
#include "models/token_head.h"
#include "models/transformer_modules.h"

namespace accrue {

BertModel::BertModel(const ModelSpec& spec, WeightSource& source, const ModelShare& share, const TensorAxis& axis,
                     const ParallelSpec& parallel)
    : spec_(spec), share_(share), axis_(axis), parallel_(parallel), classes_(classes_of(spec, share.tensor_ranks)) {
  if (spec.width % spec.heads != 0) {
    throw std::invalid_argument("model.width " + std::to_string(spec.width) + " is no multiple of model.heads " +
                                std::to_string(spec.heads));
  }
  const std::int64_t width = spec.width;
  // V / t: this rank's rows of the token table, and with them its logits.
  const std::int64_t rows = padded_vocabulary(spec, share.tensor_ranks) / share.tensor_ranks;
  if (share.first() || share.last())
    token_embedding_ = register_module("token_embedding", std::make_shared<Embedding>(rows, width));
  if (share.first()) {
    position_embedding_ = register_module("position_embedding", std::make_shared<Embedding>(spec.context, width));
    if (spec.binary_head) type_embedding_ = register_module("type_embedding", std::make_shared<Embedding>(2, width));
  }
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const auto [first, last] = blocks_of(spec, share);
  for (std::int64_t i = first; i < last; ++i)
    blocks_.push_back(add_block(*blocks, i, block_form(spec), share.tensor_ranks));
  recomputed_ = recomputed_blocks(parallel, last - first);
  if (share.last()) {
    final_norm_ = register_module("final_norm", std::make_shared<Norm>(width));
    auto head = register_module("head", std::make_shared<torch::nn::Module>());
    dense_ = head->register_module("dense", std::make_shared<Affine>(width, width, true));
    head_norm_ = head->register_module("norm", std::make_shared<Norm>(width));
    head_bias_ = head->register_parameter("bias", at::zeros({rows}));
    if (spec.binary_head) {
      pooler_ = register_module("pooler", std::make_shared<Affine>(width, width, true));
      binary_head_ = register_module("binary_head", std::make_shared<Affine>(width, 2, true));
    }
  }
  init_transformer(spec, share, source, *this);
}

// [B, T] int64 -> [B, T, D], or this rank's rows [B T / t, D].
at::Tensor BertModel::embedded(const Batch& batch) const {
  const std::int64_t positions = batch.inputs.size(1);
  if (positions > spec_.context) {
    throw std::invalid_argument("a sequence of " + std::to_string(positions) + " tokens does not fit model.context " +
                                std::to_string(spec_.context));
  }
  uses(token_embedding_->weight, (type_embedding_ ? type_embedding_ : position_embedding_)->weight);
  // [B, T, D] + [T, D], the same positions for every sample.
  at::Tensor x = at::add(vocab_parallel_embedding(batch.inputs, token_embedding_->weight, axis_),
                         position_embedding_->weight.slice(0, 0, positions));
  if (type_embedding_)
    // Without types every token belongs to segment 0.
    x = at::add(
        x, at::embedding(type_embedding_->weight, batch.types.defined() ? batch.types : at::zeros_like(batch.inputs)));
  // Before the dropout, so that each rank draws masks for its own rows only.
  if (axis_.sequence()) x = scatter_rows(x.reshape({-1, x.size(-1)}), axis_);
  return dropped(x, is_training() ? spec_.dropout : 0.0, axis_);
}

// [B, T, D] -> [B, T, D], or rows [B T / t, D] of both.
at::Tensor BertModel::through_blocks(at::Tensor x, const Batch& batch) const {
  const double dropout = is_training() ? spec_.dropout : 0.0;
  BlockShape shape{.heads = spec_.heads / share_.tensor_ranks,
                   .positions = batch.inputs.size(1),
                   .axis = axis_,
                   .recompute_attention = parallel_.recompute == RecomputeKind::selective,
                   .causal = false};
  if (batch.padding.defined()) shape.mask = padding_scores(batch.padding, x.scalar_type());  // [B, 1, 1, T]
  const auto run = [this, shape, dropout](at::Tensor y, const BlockRange& range) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const GptBlockWeights& block = blocks_[static_cast<std::size_t>(i)];
      uses(block.norm_1_weight, block.down_bias);
      y = mlp_half(attention_half(y, block, shape, dropout), block, shape, dropout);
    }
    return y;
  };
  const RecomputeOptions options{.draws = dropout > 0.0,
                                 .shared_by = parallel_.distribute_saved_activations ? axis_ : TensorAxis()};
  return through_all(*this, std::move(x), std::ssize(blocks_), recomputed_, options, run);
}

// [B, T] int64 or received [B, T, D] -> [B, T, D], or rows [B T / t, D].
at::Tensor BertModel::forward(const Batch& batch, const at::Tensor& received) {
  return through_blocks(share_.first() ? embedded(batch) : received, batch);
}

// [B, T, D], or rows [B T / t, D]: the outputs of the previous stage.
at::Tensor BertModel::empty_input(const Batch& batch) const {
  if (share_.first()) return ModelPart::empty_input(batch);
  const std::int64_t sequences = batch.inputs.size(0), positions = batch.inputs.size(1);
  const auto options = blocks_.front().norm_1_weight.options().requires_grad(false);
  if (axis_.sequence()) return at::empty({sequences * positions / axis_.size(), spec_.width}, options);
  return at::empty({sequences, positions, spec_.width}, options);
}

// [B, T, D] -> [B, T, D], or rows [B T / t, D] of both.
at::Tensor BertModel::encoded(const at::Tensor& outputs) const {
  // Also those of the heads, which use this function's result.
  uses(token_embedding_->weight, token_embedding_->weight);
  uses(final_norm_->weight, binary_head_ ? binary_head_->bias : head_norm_->bias);
  return at::layer_norm(outputs, {outputs.size(-1)}, final_norm_->weight, final_norm_->bias, norm_eps);
}

// [B, T, D] or rows [B T / t, D] -> [B, D].
at::Tensor BertModel::pooled(const at::Tensor& encoded, std::int64_t positions) const {
  if (!pooler_) throw std::logic_error("a BERT without a binary head has no pooler");
  // [B T, D]. Every rank computes the whole pooler, so each already has the whole gradient of these rows.
  const at::Tensor all = axis_.sequence() ? gather_rows(encoded, axis_, RowsAreUsedBy::every_rank) : encoded;
  const at::Tensor first = all.reshape({-1, positions, all.size(-1)}).select(1, 0);
  // tanh(W x_0 + b), with x_0 [B, D] the states of the first positions.
  return at::tanh(at::linear(first, pooler_->weight, pooler_->bias));
}

at::Tensor BertModel::logits(const at::Tensor& outputs) const {
  return masked_logits(encoded(outputs));
}

// [B, T, D] -> [B, T].
at::Tensor BertModel::token_losses(const at::Tensor& outputs, const Batch& batch) const {
  return losses_of_tokens(logits(outputs), batch.targets, classes_, axis_, label_smoothing());
}

// norm(gelu(x W^T + b)) table^T + bias. [B, T, D] -> [B, T, V / t]; of rows [B T / t, D] it gathers all: [B T, V / t].
at::Tensor BertModel::masked_logits(const at::Tensor& encoded) const {
  const at::Tensor hidden = at::gelu(at::linear(encoded, dense_->weight, dense_->bias));
  const at::Tensor normed = at::layer_norm(hidden, {hidden.size(-1)}, head_norm_->weight, head_norm_->bias, norm_eps);
  return token_logits(normed, token_embedding_->weight, head_bias_, classes_, axis_);
}

// [B, D] -> [B, 2].
at::Tensor BertModel::order_logits(const at::Tensor& pooled) const {
  return at::linear(pooled, binary_head_->weight, binary_head_->bias);
}

// Megatron-LM's loss: the mean over masked tokens plus the mean over samples. Both are kept as sums, [].
LossSum BertModel::loss(const at::Tensor& outputs, const Batch& batch) {
  const at::Tensor states = encoded(outputs);
  LossSum sum{token_loss(masked_logits(states), batch.targets, classes_, axis_, label_smoothing()), batch.items};
  if (!binary_head_ || !batch.order.defined()) return sum;
  // Logits [B, 2] against order [B].
  sum.second = cross_entropy_sum(order_logits(pooled(states, batch.inputs.size(1))), batch.order);
  sum.second_count = batch.samples;
  return sum;
}

}  // namespace accrue
