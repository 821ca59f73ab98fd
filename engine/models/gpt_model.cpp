// SPDX-License-Identifier: Apache-2.0
// Sources of the architectures: the GPT-2 report; Touvron et al., arXiv:2302.13971, and Hugging Face's Llama.
// Shapes: B sequences, T positions, D width, V vocabulary, t tensor-parallel ranks.
#include "models/gpt_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include <iterator>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/parallel/tensor_layers.h"
#include "models/fused_blocks.h"
#include "models/token_head.h"
#include "models/transformer_modules.h"

namespace accrue {

namespace {

/// Radians that each pair of a head's numbers turns per position, in float32: base^(-2 i / E), of which Llama 3 divides
/// the low frequencies by a factor: those whose wave is longer than the context before allows for, and in part those
/// between. Shapes: [E / 2]. Source: Llama 3's reference code; Hugging Face's rope_type "llama3".
at::Tensor rotary_turns(const ModelSpec& spec) {
  const std::int64_t width = block_form(spec).head_width;
  const at::Tensor powers = at::arange(0, width, 2, at::kFloat) / static_cast<double>(width);
  at::Tensor turns = 1.0 / at::pow(spec.rotary_base, powers);
  if (spec.rotary_scaling.size() != 4) return turns;
  const double factor = spec.rotary_scaling[0], low = spec.rotary_scaling[1], high = spec.rotary_scaling[2];
  const double context = spec.rotary_scaling[3];
  const at::Tensor wave = 2.0 * std::numbers::pi / turns;
  const at::Tensor between = (context / wave - low) / (high - low);  // 0 at the long end, 1 at the short
  const at::Tensor mixed = (1.0 - between) * turns / factor + between * turns;
  const at::Tensor slow = at::where(wave > context / low, turns / factor, turns);
  return at::where((wave >= context / high).logical_and(wave <= context / low), mixed, slow);
}

}  // namespace

GptModel::GptModel(const ModelSpec& spec, WeightSource& source, const ModelShare& share, const TensorAxis& axis,
                   const ParallelSpec& parallel)
    : spec_(spec),
      share_(share),
      axis_(axis),
      form_(block_form(spec)),
      recompute_(parallel.recompute),
      distribute_(parallel.distribute_saved_activations),
      classes_(classes_of(spec, share.tensor_ranks)) {
  if (!spec.head_width && spec.width % spec.heads != 0) {
    throw std::invalid_argument("model.width " + std::to_string(spec.width) + " is no multiple of model.heads " +
                                std::to_string(spec.heads));
  }
  // V / t, with V padded to a multiple of t.
  const std::int64_t rows = padded_vocabulary(spec, share.tensor_ranks) / share.tensor_ranks;
  if (share.first() || (share.last() && form_.tied_head)) {
    token_embedding_ = register_module("token_embedding", std::make_shared<Embedding>(rows, spec.width));
  }
  if (share.first() && form_.positions == PositionKind::learned)
    position_embedding_ = register_module("position_embedding", std::make_shared<Embedding>(spec.context, spec.width));
  auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
  const auto [first, last] = blocks_of(spec, share);
  for (std::int64_t i = first; i < last; ++i) blocks_.push_back(add_block(*blocks, i, form_, share.tensor_ranks));
  recomputed_ = recomputed_blocks(parallel, last - first);
  if (share.last())
    final_norm_ = register_module("final_norm", std::make_shared<Norm>(spec.width, form_.norm == NormKind::layer));
  if (share.last() && !form_.tied_head) head_ = register_module("head", std::make_shared<Embedding>(rows, spec.width));
  if (form_.positions == PositionKind::rotary) turns_ = rotary_turns(spec);
  init_transformer(spec, share, source, *this);
}

// [B, T] int64 -> [B, T, D], or this rank's rows [B T / t, D].
at::Tensor GptModel::embedded(const at::Tensor& tokens, const at::Tensor& positions) const {
  const std::int64_t length = tokens.size(1);
  if (length > spec_.context) {
    throw std::invalid_argument("a sequence of " + std::to_string(length) + " tokens does not fit model.context " +
                                std::to_string(spec_.context));
  }
  uses(token_embedding_->weight, (position_embedding_ ? position_embedding_ : token_embedding_)->weight);
  // [B, T, D]: token rows [V / t, D] plus position rows [T, D].
  at::Tensor x = vocab_parallel_embedding(tokens, token_embedding_->weight, axis_);
  if (position_embedding_) {
    const at::Tensor& table = position_embedding_->weight;
    x = at::add(x, positions.defined() ? at::embedding(table, positions) : table.slice(0, 0, length));
  }
  // Before the dropout, so that each rank draws masks for its own rows only.
  if (axis_.sequence()) x = scatter_rows(x.reshape({-1, x.size(-1)}), axis_);
  return dropped(x, is_training() ? spec_.dropout : 0.0, axis_);
}

// [B, T, D] -> [B, T, D], or rows [B T / t, D] of both.
at::Tensor GptModel::through_blocks(at::Tensor x, std::int64_t length, const at::Tensor& positions,
                                    const at::Tensor& mask) const {
  const double dropout = is_training() ? spec_.dropout : 0.0;
  const BlockShape shape{.heads = spec_.heads / share_.tensor_ranks,
                         .form = form_,
                         .positions = length,
                         .axis = axis_,
                         .mask = mask,
                         .rotation = rotation_of(length, positions, x),
                         .recompute_attention = recompute_ == RecomputeKind::selective};
  // Recomputation in backward must not depend on options that change in between.
  // The fused attention knows no mask but the causal one.
  const bool plain = plain_ || mask.defined() || !is_gpt2_form(form_);
  const auto run = [this, shape, dropout, plain](at::Tensor y, const BlockRange& range) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const GptBlockWeights& block = blocks_[static_cast<std::size_t>(i)];
      uses(block.norm_1_weight, block.last());
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
  return head(through_blocks(embedded(tokens), tokens.size(1), {}));
}

// [B, T, D] -> [B, T, V / t]. Of rows [B T / t, D] it gathers all: [B T, V / t].
at::Tensor GptModel::head(const at::Tensor& x) const {
  uses_head();
  // Normed [B, T, D] times the table [V / t, D] transposed gives logits [B, T, V / t].
  return column_parallel_linear(normed(x, final_norm_->weight, final_norm_->bias, form_), table(), {}, axis_);
}

void GptModel::uses_head() const {
  if (!head_) uses(token_embedding_->weight, token_embedding_->weight);
  uses(final_norm_->weight, head_                         ? head_->weight
                            : final_norm_->bias.defined() ? final_norm_->bias
                                                          : final_norm_->weight);
}

// Angles are computed in float32, whatever the model's type, as in Hugging Face's Llama: float64 would turn late
// positions by other angles than the weights were trained with.
Rotation GptModel::rotation_of(std::int64_t length, const at::Tensor& positions, const at::Tensor& x) const {
  if (form_.positions != PositionKind::rotary) return {};
  const auto options = x.options().dtype(at::kFloat).requires_grad(false);
  const at::Tensor places = positions.defined() ? positions.to(at::kFloat).view({-1, length, 1, 1})  // [B, T, 1, 1]
                                                : at::arange(length, options).view({length, 1, 1});  // [T, 1, 1]
  const at::Tensor angles = places * turns_.to(x.device());
  return {angles.cos().to(x.scalar_type()), angles.sin().to(x.scalar_type())};
}

// [V / t, D]. On one rank padding rows are cut off here; a divided softmax leaves them out by itself, so that all ranks
// have products of one size.
at::Tensor GptModel::table() const {
  const at::Tensor& weight = (head_ ? head_ : token_embedding_)->weight;
  return axis_.split() || weight.size(0) == classes_ ? weight : weight.narrow(0, 0, classes_);
}

// [B, T] int64 or received [B, T, D] -> [B, T, D], or rows [B T / t, D].
at::Tensor GptModel::forward(const Batch& batch, const at::Tensor& received) {
  // [B, 1, T, T]
  const at::Tensor mask = batch.document_starts.defined() ? document_mask(batch.document_starts) : at::Tensor();
  return through_blocks(share_.first() ? embedded(batch.inputs, batch.positions) : received, batch.inputs.size(1),
                        batch.positions, mask);
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
  const bool plain = plain_ || label_smoothing() > 0.0 || !is_gpt2_form(form_);
  if (plain || batch.inputs.numel() == 0 || !can_fuse(x, 0.0))
    return {token_loss(head(x), batch.targets, classes_, axis_, label_smoothing()), batch.items};
  uses_head();
  return {fused_head_loss(x, final_norm_->weight, final_norm_->bias, table(), batch.targets, classes_, axis_),
          batch.items};
}

}  // namespace accrue
