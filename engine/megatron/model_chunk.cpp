// SPDX-License-Identifier: Apache-2.0
#include "accrue/megatron/model_chunk.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>
#include <string_view>

#include "accrue/models/bert_classifier.h"
#include "models/bert_model.h"

namespace accrue::megatron {
namespace {

/// The model takes no attention mask. Causality hides padding behind a row's tokens; padding before a token would be
/// attended to. Shapes: mask [rows or 1, 1, T, T], true where attention is masked.
void refuse_padding_before_tokens(const at::Tensor& mask) {
  if (mask.dim() != 4 || mask.scalar_type() != at::kBool || mask.size(-1) < 2) return;
  const at::Tensor hidden = mask.diagonal(0, -2, -1);  // of every position, whether it sees itself
  const std::int64_t last = hidden.size(-1) - 1;
  if (hidden.narrow(-1, 0, last).logical_and(hidden.narrow(-1, 1, last).logical_not()).any().item<bool>())
    throw std::invalid_argument(
        "attention_mask: a row has padding before a token, and the batch has no \"document_starts\", the first token "
        "that "
        "each sees, which a GPT of a ModelSpec needs for that: add it in get_batch(), or pad on the right");
}

const at::Tensor& needed(const Batch& batch, const char* key) {
  const auto found = batch.find(key);
  if (found == batch.end()) throw std::invalid_argument(std::string("the model needs \"") + key + "\" of the batch");
  return found->second;
}

/// The rows' padding, 1 for a token. Shapes: mask [rows, T, T], true where attention is masked -> [rows, T].
at::Tensor padding_of(const at::Tensor& mask) {
  return mask.diagonal(0, -2, -1).logical_not().to(at::kLong).contiguous();
}

/// A batch of Megatron's names as a model's own.
accrue::Batch own_batch(const Batch& batch, ModelKind kind) {
  accrue::Batch own;
  own.targets = find_tensor(batch, "labels");
  switch (kind) {
    case ModelKind::gpt:
    case ModelKind::llama:
      own.inputs = needed(batch, "tokens");
      own.positions = find_tensor(batch, "positions");
      own.document_starts = find_tensor(batch, "document_starts");
      if (const at::Tensor mask = find_tensor(batch, "attention_mask");
          mask.defined() && !own.document_starts.defined())
        refuse_padding_before_tokens(mask);
      break;
    case ModelKind::bert:
      own.inputs = needed(batch, "tokens");
      own.types = find_tensor(batch, "types");
      own.padding = find_tensor(batch, "padding_mask");
      own.order = find_tensor(batch, "is_random");
      break;
    case ModelKind::t5:
      own.inputs = needed(batch, "text_enc");
      own.decoder_inputs = needed(batch, "text_dec");
      own.padding = padding_of(needed(batch, "enc_mask"));
      break;
    case ModelKind::linear:
    case ModelKind::mlp:
      own.inputs = needed(batch, "inputs");
      break;
  }
  own.samples = own.inputs.size(0);
  own.items = own.inputs.numel();
  return own;
}

/// Names of the module that holds the part's parameters.
constexpr std::string_view prefix = "part.";

ParameterPlace place_in(const std::vector<ParameterShare>& shares, const std::string& name, bool divided_in_parts) {
  for (const ParameterShare& each : shares)
    if (each.name == name)
      return {.name = each.name,
              .slice = slice_of(each),
              .divided = each.divided,
              .shared = each.shared,
              .on_rows = each.on_rows,
              .tied = divided_in_parts && each.name == tied_embedding,
              .positions = divided_in_parts && each.name == "position_embedding.weight"};
  return {};
}

std::string bare(const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

class OwnChunk final : public ModelChunk {
 public:
  OwnChunk(std::shared_ptr<ModelPart> part, const ModelSpec& model, const ModelShare& share)
      : share_(share), model_(model), shares_(parameter_shares(model, share)) {
    part_ = register_module("part", std::move(part));
  }

  Tensors forward(const Batch& batch) override {
    const accrue::Batch own = own_batch(batch, model_.kind);
    const at::Tensor outputs = part_->forward(own, input_tensor());
    if (!share_.last()) return {outputs};
    hidden_ = outputs;
    shape_ = (model_.kind == ModelKind::t5 ? own.decoder_inputs : own.inputs).sizes().vec();
    if (!is_transformer(model_.kind) || !own.targets.defined()) return {outputs};
    Tensors made{part_->token_losses(outputs, own)};
    if (const auto bert = std::dynamic_pointer_cast<BertModel>(part_); bert && model_.binary_head)
      made.push_back(bert->order_logits(bert->pooled(bert->encoded(outputs), shape_[1])));
    return made;
  }

  at::Tensor empty_input(const Batch& batch) const override {
    return part_->empty_input(own_batch(batch, model_.kind));
  }
  /// Logits of the last forward. Shapes: rows [B T, V / t] or [B, T, V / t] -> [B, T, V / t].
  at::Tensor logits(const Tensors& /*outputs*/) const override {
    return part_->logits(hidden_).reshape({shape_[0], shape_[1], -1});
  }

  ParameterPlace place_of(const std::string& name) const override {
    return place_in(shares_, bare(name), share_.parts > 1 && block_form(model_).tied_head);
  }

 private:
  ModelShare share_;
  ModelSpec model_;
  std::vector<ParameterShare> shares_;
  std::shared_ptr<ModelPart> part_;
  at::Tensor hidden_;                ///< the last part's outputs, before the head
  std::vector<std::int64_t> shape_;  ///< of its tokens
};

class ClassifierChunk final : public ModelChunk {
 public:
  ClassifierChunk(const ModelSpec& model, std::int64_t labels, std::uint64_t seed, const TensorAxis& axis)
      : shares_(parameter_shares(model, {.tensor_ranks = axis.size(), .tensor_rank = axis.rank()})) {
    part_ = register_module("part", std::make_shared<BertClassifier>(model, labels, seed, axis));
  }
  Tensors forward(const Batch& batch) override { return {part_->forward(own_batch(batch, ModelKind::bert))}; }
  ParameterPlace place_of(const std::string& name) const override {
    const std::string own = bare(name);
    if (!own.starts_with("bert.")) return {};
    ParameterPlace place = place_in(shares_, own.substr(5), false);
    if (!place.name.empty()) place.name = own;
    return place;
  }

 private:
  std::vector<ParameterShare> shares_;
  std::shared_ptr<BertClassifier> part_;
};

}  // namespace

at::Tensor find_tensor(const Batch& batch, const char* name) {
  const auto found = batch.find(name);
  return found == batch.end() ? at::Tensor() : found->second;
}

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

Batch named_batch(const accrue::Batch& batch, ModelKind kind) {
  if (!is_transformer(kind)) return {{"inputs", batch.inputs}, {"targets", batch.targets}};
  Batch named{{"loss_mask", (batch.targets != -100).to(at::kFloat)}};
  if (is_decoder_only(kind)) {
    // A target of -100 is no token. The text has 0 in its place, and loss_mask leaves it out.
    const at::Tensor last = batch.targets.narrow(1, batch.targets.size(1) - 1, 1).clamp_min(0);
    // [B, T + 1]: the inputs and the last target, from which a train step takes tokens and labels again.
    named["text"] = at::cat({batch.inputs, last}, 1);
    if (batch.positions.defined()) named["positions"] = batch.positions;
    if (batch.document_starts.defined()) named["document_starts"] = batch.document_starts;
    return named;
  }
  const at::Tensor real = batch.padding.defined() ? batch.padding : at::ones_like(batch.inputs);
  named["labels"] = batch.targets;
  if (kind == ModelKind::bert) {
    named["text"] = batch.inputs;
    named["padding_mask"] = real;
    named["types"] = batch.types.defined() ? batch.types : at::zeros_like(batch.inputs);
    named["is_random"] = batch.order.defined() ? batch.order : at::zeros({batch.samples}, batch.inputs.options());
    return named;
  }
  const at::Tensor decoder = at::ones_like(batch.decoder_inputs);
  named["text_enc"] = batch.inputs;
  named["text_dec"] = batch.decoder_inputs;
  // [B, S, S], [B, T, T] and [B, T, S], 1 where a query sees a key: both are tokens, and in dec_mask the key is not
  // later.
  named["enc_mask"] = real.unsqueeze(2) * real.unsqueeze(1);
  named["dec_mask"] = (decoder.unsqueeze(2) * decoder.unsqueeze(1)).tril();
  named["enc_dec_mask"] = decoder.unsqueeze(2) * real.unsqueeze(1);
  return named;
}

std::shared_ptr<ModelChunk> chunk_of(std::shared_ptr<ModelPart> part, const ModelSpec& model, const ModelShare& share) {
  return std::make_shared<OwnChunk>(std::move(part), model, share);
}

std::shared_ptr<ModelChunk> model_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                        const TensorAxis& axis, const ParallelSpec& parallel) {
  return chunk_of(make_model_part(model, seed, share, axis, parallel), model, share);
}

std::shared_ptr<ModelChunk> gpt_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                      const TensorAxis& axis, const ParallelSpec& parallel) {
  if (!is_decoder_only(model.kind)) throw std::invalid_argument("gpt_chunk() makes parts of a GPT");
  return model_chunk(model, seed, share, axis, parallel);
}

std::shared_ptr<ModelChunk> bert_classifier_chunk(const ModelSpec& model, std::int64_t labels, std::uint64_t seed,
                                                  const TensorAxis& axis) {
  return std::make_shared<ClassifierChunk>(model, labels, seed, axis);
}

}  // namespace accrue::megatron
