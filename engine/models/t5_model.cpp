// SPDX-License-Identifier: Apache-2.0
// Source: Megatron-LM's T5Model (megatron-core 0.12.0). Blocks use GELU in its tanh form, like Megatron-LM's fused one.
// Shapes: B samples, S positions of the encoder, T of the decoder, D width, t tensor-parallel ranks.
#include "models/t5_model.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "accrue/parallel/tensor_layers.h"
#include "models/token_head.h"
#include "models/transformer_modules.h"

namespace accrue {

namespace {

at::Tensor normed(const at::Tensor& x, const Norm& norm) {
  return at::layer_norm(x, {x.size(-1)}, norm.weight, norm.bias, norm_eps);
}

}  // namespace

T5Model::T5Model(const ModelSpec& spec, WeightSource& source, const ModelShare& share, const TensorAxis& axis,
                 const ParallelSpec& parallel)
    : spec_(spec), share_(share), axis_(axis), parallel_(parallel), classes_(classes_of(spec, share.tensor_ranks)) {
  if (spec.width % spec.heads != 0) {
    throw std::invalid_argument("model.width " + std::to_string(spec.width) + " is no multiple of model.heads " +
                                std::to_string(spec.heads));
  }
  const std::int64_t width = spec.width, ranks = share.tensor_ranks;
  const std::int64_t rows = padded_vocabulary(spec, ranks) / ranks;  // V / t
  const BlockRange encodes = blocks_of(spec, share), decodes = decoder_blocks_of(spec, share);
  const bool embeds = share.first() || starts_decoder();
  if (embeds || share.last())
    token_embedding_ = register_module("token_embedding", std::make_shared<Embedding>(rows, width));
  if (embeds) {
    // Both stacks index one table by position, so it has the longer context's rows.
    const std::int64_t positions = std::max(spec.context, spec.tokens_of_decoder());
    position_embedding_ = register_module("position_embedding", std::make_shared<Embedding>(positions, width));
  }
  auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = encodes.first; i < encodes.last; ++i)
    encoder_.push_back(add_block(*encoder, i, block_form(spec), ranks));
  encoder_again_ = recomputed_blocks(parallel, std::ssize(encoder_));
  if (share.parts == 1 || share.part == split_part(spec, share.parts, share.split) - 1)
    encoder_norm_ = register_module("encoder_norm", std::make_shared<Norm>(width));
  auto decoder = register_module("decoder", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = decodes.first; i < decodes.last; ++i) {
    DecoderBlock& block = decoder_.emplace_back();
    block.block = add_block(*decoder, i, block_form(spec), ranks, &block.cross);
  }
  decoder_again_ = recomputed_blocks(parallel, std::ssize(decoder_));
  if (share.last()) {
    final_norm_ = register_module("final_norm", std::make_shared<Norm>(width));
    auto head = register_module("head", std::make_shared<torch::nn::Module>());
    head_bias_ = head->register_parameter("bias", at::zeros({rows}));
  }
  init_transformer(spec, share, source, *this);
}

bool T5Model::starts_decoder() const {
  return share_.part == split_part(spec_, share_.parts, share_.split);
}

// [B, T] int64 -> [B, T, D], or this rank's rows [B T / t, D].
at::Tensor T5Model::embedded(const at::Tensor& tokens, std::int64_t context, const char* key) const {
  const std::int64_t positions = tokens.size(1);
  if (positions > context) {
    throw std::invalid_argument("a sequence of " + std::to_string(positions) + " tokens does not fit " + key + " " +
                                std::to_string(context));
  }
  uses(token_embedding_->weight, position_embedding_->weight);
  // [B, T, D] + [T, D], the same positions for every sample.
  at::Tensor x = at::add(vocab_parallel_embedding(tokens, token_embedding_->weight, axis_),
                         position_embedding_->weight.slice(0, 0, positions));
  // Before the dropout, so that each rank draws masks for its own rows only.
  if (axis_.sequence()) x = scatter_rows(x.reshape({-1, x.size(-1)}), axis_);
  return dropped(x, dropout(), axis_);
}

BlockShape T5Model::shape_of(const at::Tensor& tokens, bool causal) const {
  return {.heads = spec_.heads / share_.tensor_ranks,
          .positions = tokens.size(1),
          .axis = axis_,
          .recompute_attention = parallel_.recompute == RecomputeKind::selective,
          .causal = causal};
}

RecomputeOptions T5Model::recomputation() const {
  return {.draws = dropout() > 0.0, .shared_by = parallel_.distribute_saved_activations ? axis_ : TensorAxis()};
}

// [B, S, D] -> [B, S, D], or rows [B S / t, D] of both.
at::Tensor T5Model::encoded(at::Tensor x, const Batch& batch) const {
  BlockShape shape = shape_of(batch.inputs, false);
  if (batch.padding.defined()) shape.mask = padding_scores(batch.padding, x.scalar_type());  // [B, 1, 1, S]
  const auto run = [this, shape, drop = dropout()](at::Tensor y, const BlockRange& range) {
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const GptBlockWeights& block = encoder_[static_cast<std::size_t>(i)];
      uses(block.norm_1_weight, block.down_bias);
      y = mlp_half(attention_half(y, block, shape, drop), block, shape, drop);
    }
    return y;
  };
  x = through_all(*this, std::move(x), std::ssize(encoder_), encoder_again_, recomputation(), run);
  if (!encoder_norm_) return x;
  uses(encoder_norm_->weight, encoder_norm_->bias);
  return normed(x, *encoder_norm_);
}

std::int64_t T5Model::own_rows(const at::Tensor& tokens) const {
  return tokens.numel() / (axis_.sequence() ? axis_.size() : 1);
}

at::Tensor T5Model::shaped(const at::Tensor& rows, const at::Tensor& tokens) const {
  if (axis_.sequence()) return rows;
  return rows.view({tokens.size(0), tokens.size(1), rows.size(-1)});
}

// [B, T, D] and [B, S, D] -> [B T + B S, D]; of rows, each divided by t.
at::Tensor T5Model::joined(const at::Tensor& decoder, const at::Tensor& encoder) const {
  const std::int64_t width = spec_.width;
  return at::cat({decoder.reshape({-1, width}), encoder.reshape({-1, width})});
}

// rows [R, D] -> [R, D] with R = B T + B S, or R / t under sequence parallelism. Recomputation keeps one tensor, and a
// pipeline sends one, so both stay joined between blocks.
at::Tensor T5Model::decoded(at::Tensor rows, const Batch& batch) const {
  const BlockShape own = shape_of(batch.decoder_inputs, true);
  BlockShape across = shape_of(batch.decoder_inputs, false);
  if (batch.padding.defined()) across.mask = padding_scores(batch.padding, rows.scalar_type());  // [B, 1, 1, S]
  const std::int64_t decoder_rows = own_rows(batch.decoder_inputs);
  const auto run = [this, own, across, decoder_rows, decoder_tokens = batch.decoder_inputs, tokens = batch.inputs,
                    drop = dropout()](const at::Tensor& both, const BlockRange& range) {
    if (range.first == range.last) return both;
    // y [B, T, D] and encoder [B, S, D], or their rows.
    at::Tensor y = shaped(both.narrow(0, 0, decoder_rows), decoder_tokens);
    const at::Tensor encoder = shaped(both.narrow(0, decoder_rows, both.size(0) - decoder_rows), tokens);
    for (std::int64_t i = range.first; i < range.last; ++i) {
      const auto& [block, cross] = decoder_[static_cast<std::size_t>(i)];
      uses(block.norm_1_weight, block.down_bias);
      y = attention_half(y, block, own, drop);
      y = cross_half(y, encoder, cross, across, tokens.size(1), drop);
      y = mlp_half(y, block, own, drop);
    }
    return joined(y, encoder);
  };
  return through_all(*this, std::move(rows), std::ssize(decoder_), decoder_again_, recomputation(), run);
}

// Encoder parts: -> [B, S, D]. Decoder parts: -> rows [R, D]; the last one: -> [B, T, D].
at::Tensor T5Model::forward(const Batch& batch, const at::Tensor& received) {
  at::Tensor x = received;
  if (share_.first()) x = embedded(batch.inputs, spec_.context, "model.context");
  if (encodes()) x = encoded(std::move(x), batch);
  if (!decodes()) return x;
  if (starts_decoder())
    x = joined(embedded(batch.decoder_inputs, spec_.tokens_of_decoder(), "model.decoder_context"), x);
  x = decoded(std::move(x), batch);
  return share_.last() ? shaped(x.narrow(0, 0, own_rows(batch.decoder_inputs)), batch.decoder_inputs) : x;
}

// [B, S, D] from an encoder part, rows [R, D] from a decoder part.
at::Tensor T5Model::empty_input(const Batch& batch) const {
  if (share_.first()) return ModelPart::empty_input(batch);
  const at::Tensor& weight = decodes() ? decoder_.front().block.norm_1_weight : encoder_.front().norm_1_weight;
  const auto options = weight.options().requires_grad(false);
  const std::int64_t rows = own_rows(batch.inputs);
  if (decodes() && !starts_decoder()) return at::empty({rows + own_rows(batch.decoder_inputs), spec_.width}, options);
  return shaped(at::empty({rows, spec_.width}, options), batch.inputs);
}

// [B, T, D] -> [B, T, V / t]. Of rows [B T / t, D] it gathers all: [B T, V / t].
at::Tensor T5Model::logits(const at::Tensor& outputs) const {
  uses(token_embedding_->weight, token_embedding_->weight);
  uses(final_norm_->weight, head_bias_);
  return token_logits(normed(outputs, *final_norm_), token_embedding_->weight, head_bias_, classes_, axis_);
}

// [B, T, D] -> [B, T].
at::Tensor T5Model::token_losses(const at::Tensor& outputs, const Batch& batch) const {
  return losses_of_tokens(logits(outputs), batch.targets, classes_, axis_, label_smoothing());
}

// [B, T, D] -> [].
LossSum T5Model::loss(const at::Tensor& outputs, const Batch& batch) {
  return {token_loss(logits(outputs), batch.targets, classes_, axis_, label_smoothing()), batch.items};
}

}  // namespace accrue
