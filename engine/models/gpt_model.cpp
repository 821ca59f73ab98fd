// SPDX-License-Identifier: Apache-2.0
// Source of the architecture: the GPT-2 report.
// Shapes: B sequences, T positions, D width, V vocabulary, t tensor-parallel ranks.
#include "models/gpt_model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>

#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/parallel/tensor_layers.h"
#include "models/fused_blocks.h"
#include "models/token_head.h"
#include "models/transformer_modules.h"

namespace accrue {

GptModel::GptModel(const ModelSpec& spec, WeightSource& source, const ModelShare& share, const TensorAxis& axis,
                   const ParallelSpec& parallel)
    : spec_(spec),
      share_(share),
      axis_(axis),
      recompute_(parallel.recompute),
      distribute_(parallel.distribute_saved_activations),
      classes_(classes_of(spec, share.tensor_ranks)) {
  if (spec.width % spec.heads != 0) {
    throw std::invalid_argument("model.width " + std::to_string(spec.width) + " is no multiple of model.heads " +
                                std::to_string(spec.heads));
  }
  if (share.first() || share.last()) {
    // V / t, with V padded to a multiple of t.
    const std::int64_t rows = padded_vocabulary(spec, share.tensor_ranks) / share.tensor_ranks;
    token_embedding_ = register_module("token_embedding", std::make_shared<Embedding>(rows, spec.width));
  }
  if (share.first())
    position_embedding_ = register_module("position_embedding", std::make_shared<Embedding>(spec.context, spec.width));
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const auto [first, last] = blocks_of(spec, share);
  for (std::int64_t i = first; i < last; ++i) blocks_.push_back(add_block(*blocks, i, spec.width, share.tensor_ranks));
  recomputed_ = recomputed_blocks(parallel, last - first);
  if (share.last()) final_norm_ = register_module("final_norm", std::make_shared<Norm>(spec.width));
  init_transformer(spec, share, source, *this);
}

// [B, T] int64 -> [B, T, D], or this rank's rows [B T / t, D].
at::Tensor GptModel::embedded(const at::Tensor& tokens, const at::Tensor& positions) const {
  const std::int64_t length = tokens.size(1);
  if (length > spec_.context) {
    throw std::invalid_argument("a sequence of " + std::to_string(length) + " tokens does not fit model.context " +
                                std::to_string(spec_.context));
  }
  const at::Tensor& table = position_embedding_->weight;
  uses(token_embedding_->weight, position_embedding_->weight);
  // [B, T, D]: token rows [V / t, D] plus position rows [T, D].
  at::Tensor x = at::add(vocab_parallel_embedding(tokens, token_embedding_->weight, axis_),
                         positions.defined() ? at::embedding(table, positions) : table.slice(0, 0, length));
  // Before the dropout, so that each rank draws masks for its own rows only.
  if (axis_.sequence()) x = scatter_rows(x.reshape({-1, x.size(-1)}), axis_);
  return dropped(x, is_training() ? spec_.dropout : 0.0, axis_);
}

// [B, T, D] -> [B, T, D], or rows [B T / t, D] of both.
at::Tensor GptModel::through_blocks(at::Tensor x, std::int64_t positions, const at::Tensor& mask) const {
  const double dropout = is_training() ? spec_.dropout : 0.0;
  const BlockShape shape{.heads = spec_.heads / share_.tensor_ranks,
                         .positions = positions,
                         .axis = axis_,
                         .mask = mask,
                         .recompute_attention = recompute_ == RecomputeKind::selective};
  // Recomputation in backward must not depend on options that change in between.
  const bool plain = plain_ || mask.defined();  // the fused attention knows no mask but the causal one
  const auto run = [this, shape, dropout, plain](at::Tensor y, const BlockRange& range) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const GptBlockWeights& block = blocks_[static_cast<std::size_t>(i)];
      uses(block.norm_1_weight, block.down_bias);
      y = plain || !can_fuse(y, dropout) ? mlp_half(attention_half(y, block, shape, dropout), block, shape, dropout)
                                         : fused_mlp_half(fused_attention_half(y, block, shape), block, shape);
    }
    return y;
  };
  const RecomputeOptions options{.draws = dropout > 0.0, .shared_by = distribute_ ? axis_ : TensorAxis()};
  return through_all(*this, std::move(x), std::ssize(blocks_), recomputed_, options, run);
}

// [B, T] int64 -> [B, T, V].
at::Tensor GptModel::logits_of(const at::Tensor& tokens) {
  return head(through_blocks(embedded(tokens), tokens.size(1)));
}

// [B, T, D] -> [B, T, V / t]. Of rows [B T / t, D] it gathers all: [B T, V / t].
at::Tensor GptModel::head(const at::Tensor& x) const {
  uses(token_embedding_->weight, token_embedding_->weight);
  uses(final_norm_->weight, final_norm_->bias);
  const at::Tensor normed = at::layer_norm(x, {x.size(-1)}, final_norm_->weight, final_norm_->bias, norm_eps);
  // The head is tied: normed [B, T, D] times the table [V / t, D] transposed gives logits [B, T, V / t].
  return column_parallel_linear(normed, table(), {}, axis_);
}

// [V / t, D]. On one rank padding rows are cut off here; a divided softmax leaves them out by itself, so that all ranks
// have products of one size.
at::Tensor GptModel::table() const {
  const at::Tensor& weight = token_embedding_->weight;
  return axis_.split() || weight.size(0) == classes_ ? weight : weight.narrow(0, 0, classes_);
}

// [B, T] int64 or received [B, T, D] -> [B, T, D], or rows [B T / t, D].
at::Tensor GptModel::forward(const Batch& batch, const at::Tensor& received) {
  // [B, 1, T, T]
  const at::Tensor mask = batch.document_starts.defined() ? document_mask(batch.document_starts) : at::Tensor();
  return through_blocks(share_.first() ? embedded(batch.inputs, batch.positions) : received, batch.inputs.size(1),
                        mask);
}

// [B, T, D], or rows [B T / t, D]: the outputs of the previous stage.
at::Tensor GptModel::empty_input(const Batch& batch) const {
  if (share_.first()) return ModelPart::empty_input(batch);
  const std::int64_t sequences = batch.inputs.size(0), positions = batch.inputs.size(1);
  const auto options = blocks_.front().norm_1_weight.options().requires_grad(false);
  if (axis_.sequence()) return at::empty({sequences * positions / axis_.size(), spec_.width}, options);
  return at::empty({sequences, positions, spec_.width}, options);
}

// [B, T, D] -> [B, T].
at::Tensor GptModel::token_losses(const at::Tensor& x, const Batch& batch) const {
  return losses_of_tokens(logits(x), batch.targets, classes_, axis_, label_smoothing());
}

// [B, T, D] -> []. The fused head never holds all logits [B, T, V] at once.
LossSum GptModel::loss(const at::Tensor& x, const Batch& batch) {
  if (plain_ || label_smoothing() > 0.0 || batch.inputs.numel() == 0 || !can_fuse(x, 0.0))
    return {token_loss(head(x), batch.targets, classes_, axis_, label_smoothing()), batch.items};
  uses(token_embedding_->weight, token_embedding_->weight);
  uses(final_norm_->weight, final_norm_->bias);
  return {fused_head_loss(x, final_norm_->weight, final_norm_->bias, table(), batch.targets, classes_, axis_),
          batch.items};
}

}  // namespace accrue
