// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/model_chunk.h"

#include <stdexcept>

namespace accrue::megatron {
namespace {

/// The model knows no mask of attention, and needs none for padding behind a row's tokens, which none of them sees.
/// Padding before a token would be attended to. Shapes: mask [rows or 1, 1, T, T], true where attention is masked.
void refuse_padding_before_tokens(const at::Tensor& mask) {
  if (mask.dim() != 4 || mask.scalar_type() != at::kBool || mask.size(-1) < 2) return;
  const at::Tensor hidden = mask.diagonal(0, -2, -1);  // of every position, whether it sees itself
  const std::int64_t last = hidden.size(-1) - 1;
  if (hidden.narrow(-1, 0, last).logical_and(hidden.narrow(-1, 1, last).logical_not()).any().item<bool>())
    throw std::invalid_argument(
        "attention_mask: a row has padding before a token; a GPT of a ModelSpec takes it behind the tokens alone: pad "
        "on the right, or give a custom_model_provider_function");
}

/// A part of Accrue's GPT under the names of Megatron's batches.
class GptChunk final : public ModelChunk {
 public:
  GptChunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share, const TensorAxis& axis,
           const ParallelSpec& parallel)
      : share_(share), shares_(parameter_shares(model, share)) {
    part_ = register_module("part", make_model_part(model, seed, share, axis, parallel));
  }

  Tensors forward(const Batch& batch) override {
    const accrue::Batch own = batch_of(batch);
    const at::Tensor outputs = part_->forward(own, input_tensor());
    if (!share_.last()) return {outputs};
    hidden_ = outputs;
    shape_ = own.inputs.sizes().vec();
    return {own.targets.defined() ? part_->token_losses(outputs, own) : outputs};
  }

  at::Tensor empty_input(const Batch& batch) const override { return part_->empty_input(batch_of(batch)); }
  /// Of the last forward.
  at::Tensor logits(const Tensors& /*outputs*/) const override {
    return part_->logits(hidden_).reshape({shape_[0], shape_[1], -1});
  }

  ParameterPlace place_of(const std::string& name) const override {
    for (const ParameterShare& each : shares_)
      if ("part." + each.name == name)
        return {.divided = each.divided,
                .shared = each.shared,
                .on_rows = each.on_rows,
                .tied = share_.parts > 1 && each.name == tied_embedding};
    return {};
  }

 private:
  static accrue::Batch batch_of(const Batch& batch) {
    accrue::Batch own;
    own.inputs = batch.at("tokens");
    if (const auto labels = batch.find("labels"); labels != batch.end()) own.targets = labels->second;
    if (const auto mask = batch.find("attention_mask"); mask != batch.end() && mask->second.defined())
      refuse_padding_before_tokens(mask->second);
    own.samples = own.inputs.size(0);
    own.items = own.inputs.numel();
    return own;
  }

  ModelShare share_;
  std::vector<ParameterShare> shares_;
  std::shared_ptr<ModelPart> part_;
  at::Tensor hidden_;                ///< the last part's outputs, before the head
  std::vector<std::int64_t> shape_;  ///< of its tokens
};

}  // namespace

DataIter::DataIter(std::vector<Batch> batches)
    : next_([batches = std::move(batches), i = std::size_t{0}]() mutable -> std::optional<Batch> {
        if (i == batches.size()) return std::nullopt;
        return batches[i++];
      }) {}

Batch DataIter::next() {
  auto batch = next_();
  if (!batch) throw std::out_of_range("the data iterator has no further micro-batch");
  return *std::move(batch);
}

at::Tensor ModelChunk::empty_input(const Batch& /*batch*/) const {
  throw std::logic_error("a model chunk that receives from another stage must say the shape: override empty_input()");
}

at::Tensor ModelChunk::logits(const Tensors& /*outputs*/) const {
  throw std::logic_error("return_logits needs a model chunk that has logits: override logits()");
}

ParameterPlace ModelChunk::place_of(const std::string& /*name*/) const {
  return {};
}

std::shared_ptr<ModelChunk> gpt_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                      const TensorAxis& axis, const ParallelSpec& parallel) {
  if (model.kind != ModelKind::gpt) throw std::invalid_argument("gpt_chunk() makes parts of a GPT");
  return std::make_shared<GptChunk>(model, seed, share, axis, parallel);
}

}  // namespace accrue::megatron
