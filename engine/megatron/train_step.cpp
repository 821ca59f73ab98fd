// SPDX-License-Identifier: Apache-2.0
// The losses are those of the originals but for two of their slips: labels and attention masks of a loader's batch are
// used, and a classifier of several classes has a loss.
// Shapes: B rows, T positions (S of an encoder, T of its decoder). Source: Accelerate's MegatronLM train steps.
#include "accrue/megatron/train_step.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <stdexcept>

#include "accrue/megatron/data_parallel_groups.h"
#include "accrue/megatron/sequence_masks.h"

namespace accrue::megatron {
namespace {

constexpr std::int64_t ignored = -100;

const at::Tensor& required(const Batch& batch, const char* key, const char* step) {
  const auto found = batch.find(key);
  if (found == batch.end() || !found->second.defined())
    throw std::invalid_argument(std::string(step) + ": the batch has no \"" + key + "\"");
  return found->second;
}

/// Tensors of a type under the same names; an indexed dataset's are int64.
Batch taken(const Batch& batch, std::initializer_list<const char*> keys, const char* step) {
  Batch all;
  for (const char* key : keys) all[key] = required(batch, key, step);
  return all;
}

/// Rows that only fill up a batch count in no loss.
void leave_out_padding_rows(Batch& made, const Batch& raw) {
  if (const at::Tensor weights = find_tensor(raw, "row_weight"); weights.defined()) made["row_weight"] = weights;
  if (!made.contains("loss_mask")) return;
  if (const at::Tensor rows = find_tensor(raw, "row_mask"); rows.defined())
    made["loss_mask"] = made.at("loss_mask") * rows.to(made.at("loss_mask").scalar_type()).unsqueeze(1);
}

/// Tokens do not see padding before them; padding sees itself. Padding behind a row's tokens is hidden by causality.
/// Shapes: real [B, T], 1 for a token; document_starts [B, T].
void leave_out_padding_before(Batch& batch, const at::Tensor& real) {
  // argmax gives the first 1: the number of padding positions before a row's tokens. [B, 1]
  const at::Tensor first = (real != 0).to(at::kLong).argmax(1, /*keepdim=*/true);
  if (!first.any().item<bool>()) return;
  const at::Tensor places = at::arange(real.size(1), first.options()).expand({real.size(0), real.size(1)});
  at::Tensor starts = at::where(places < first, places, first.expand_as(places));
  if (const at::Tensor documents = find_tensor(batch, "document_starts"); documents.defined())
    starts = at::maximum(starts, documents);
  batch["document_starts"] = starts.contiguous();
}

/// [B, T] -> [B, T]: left by one, with `last` behind.
at::Tensor shifted_left(const at::Tensor& rows, std::int64_t last) {
  return at::cat({rows.narrow(1, 1, rows.size(1) - 1), at::full({rows.size(0), 1}, last, rows.options())}, 1);
}

/// Mean over the replicas, each value [], as much as the batch counts. Source: Megatron-LM's
/// average_losses_across_data_parallel_group(): each replica's mean has the same weight.
LossReport averaged(const Batch& batch, std::vector<std::pair<std::string, at::Tensor>> values, Communicator* data) {
  LossReport report;
  // The mean over micro-batches and replicas of share * loss is that over the real rows.
  if (const double share = row_share(batch); share != 1.0)
    for (auto& each : values) each.second = each.second.detach() * share;
  if (data == nullptr) {
    for (const auto& [name, value] : values) report.emplace_back(name, value.detach());
    return report;
  }
  std::vector<at::Tensor> losses;
  for (const auto& each : values) losses.push_back(each.second);
  const at::Tensor means = avg_losses_across_data_parallel_group(losses, *data);
  for (std::size_t i = 0; i < values.size(); ++i)
    report.emplace_back(values[i].first, means[static_cast<std::int64_t>(i)]);
  return report;
}

/// sum(losses * mask) / sum(mask), 0 if no token counts. In float32 at least. Shapes: both [B, T] -> [].
at::Tensor masked_mean(const at::Tensor& losses, const at::Tensor& mask) {
  const at::Tensor all = losses.to(at::promote_types(losses.scalar_type(), at::kFloat)).reshape({-1});
  const at::Tensor counts = mask.reshape({-1}).to(all.scalar_type());
  return (all * counts).sum() / counts.sum().clamp_min(1.0);
}

/// Mean over the tokens that count, or with calculate_per_token_loss their sum and number, which the caller divides.
/// Reported are the mean, or the pair over all replicas. Source: loss_func() of Accelerate's GPTTrainStep for the mean,
/// of Megatron-LM's pretrain_gpt.py for the pair.
/// Shapes: losses, mask [B, T] -> [].
LossOut masked_loss(const Batch& batch, const at::Tensor& losses, const at::Tensor& mask, const TrainStepArgs& args) {
  if (!args.calculate_per_token_loss) {
    const at::Tensor mean = masked_mean(losses, mask);
    return {mean, std::nullopt, averaged(batch, {{"lm loss", mean}}, args.data)};
  }
  const at::Tensor all = losses.to(at::promote_types(losses.scalar_type(), at::kFloat)).reshape({-1});
  const at::Tensor counts = mask.reshape({-1}).to(all.scalar_type());
  const at::Tensor sum = (all * counts).sum();
  at::Tensor pair = at::stack({sum.detach(), counts.sum()});
  if (args.data != nullptr) args.data->all_reduce(pair);
  return {sum, static_cast<std::int64_t>(mask.sum().item<double>()), {{"lm loss", pair}}};
}

const at::Tensor& output(const Tensors& outputs, std::size_t i, const char* step) {
  if (i >= outputs.size() || !outputs[i].defined())
    throw std::invalid_argument(std::string(step) + ": the model's last part gave " + std::to_string(outputs.size()) +
                                " outputs; the loss needs number " + std::to_string(i + 1));
  return outputs[i];
}

}  // namespace

double row_share(const Batch& batch) {
  const at::Tensor weights = find_tensor(batch, "row_weight");
  // [b] -> mean. With r real rows of b, and `left` samples in the `all` rows of the last batch, (r / b) (all / left).
  return weights.defined() ? weights.mean().item<double>() : 1.0;
}

ForwardOut AbstractTrainStep::forward_step(DataIter& data, ModelChunk& chunk, int /*microbatch*/) {
  Batch batch = get_batch(data);
  Tensors outputs = chunk.forward(batch);
  return {std::move(batch), std::move(outputs)};
}

Batch GPTTrainStep::get_batch(DataIter& data) {
  const Batch raw = data.next();
  Batch batch;
  LeftToRightOptions options{.eod_token = args_.eod_token.value_or(0),
                             .reset_position_ids = args_.reset_position_ids,
                             .reset_attention_mask = args_.reset_attention_mask,
                             .eod_mask_loss = args_.eod_mask_loss};
  if (args_.megatron_dataset_flag) {
    const at::Tensor text = required(raw, "text", "GPTTrainStep").to(at::kLong);
    // text [B, T + 1]: the token after each token is its label.
    batch["tokens"] = text.narrow(1, 0, text.size(1) - 1).contiguous();
    batch["labels"] = text.narrow(1, 1, text.size(1) - 1).contiguous();
    for (const char* key : {"positions", "document_starts"})
      if (const at::Tensor each = find_tensor(raw, key); each.defined()) batch[key] = each;
  } else {
    batch["tokens"] = required(raw, "input_ids", "GPTTrainStep").to(at::kLong).contiguous();
    options.eod_mask_loss = args_.eod_token.has_value();
  }
  // attention_mask [1 or B, 1, T, T], loss_mask and position_ids [B, T].
  const LeftToRight masks = get_ltor_masks_and_position_ids(batch["tokens"], options);
  batch["attention_mask"] = masks.attention_mask;
  batch["position_ids"] = masks.position_ids;
  if (args_.reset_position_ids) batch["positions"] = masks.position_ids;
  if (masks.document_starts.defined()) batch["document_starts"] = masks.document_starts;
  batch["loss_mask"] = masks.loss_mask;
  if (!args_.megatron_dataset_flag) {
    // Label t is token t + 1. The last position has none; without labels of the batch's own it has the end of the
    // document, where that is known.
    const at::Tensor labels = find_tensor(raw, "labels");
    batch["labels"] = labels.defined() ? shifted_left(labels.to(at::kLong), ignored)
                                       : shifted_left(batch["tokens"], args_.eod_token.value_or(ignored));
    if (const at::Tensor real = find_tensor(raw, "attention_mask"); real.defined()) {
      const at::Tensor next = shifted_left(real.to(at::kLong), 1);
      // A position counts if it and the token that it predicts are real.
      batch["loss_mask"] = batch["loss_mask"] * (real * next).to(at::kFloat);
      // [B, T] -> [B, 1, 1, T], over the keys.
      const at::Tensor hidden = (real == 0).unsqueeze(1).unsqueeze(1);  // from every later token
      batch["attention_mask"] = batch["attention_mask"].logical_or(hidden);
      leave_out_padding_before(batch, real);
    }
    batch["loss_mask"] = batch["loss_mask"] * (batch["labels"] != ignored).to(at::kFloat);
  }
  // Masks multiply: end of document, padding, labels of -100 and the data set's own.
  if (const at::Tensor given = find_tensor(raw, "loss_mask"); given.defined())
    batch["loss_mask"] = batch["loss_mask"] * given.to(at::kFloat);
  leave_out_padding_rows(batch, raw);
  return batch;
}

LossOut GPTTrainStep::loss_func(const Batch& batch, const Tensors& outputs) {
  return masked_loss(batch, output(outputs, 0, "GPTTrainStep"), required(batch, "loss_mask", "GPTTrainStep"), args_);
}

Batch BertTrainStep::get_batch(DataIter& data) {
  const Batch raw = data.next();
  Batch batch;
  if (args_.megatron_dataset_flag) {
    batch = taken(raw, {"text", "types", "labels", "is_random", "loss_mask", "padding_mask"}, "BertTrainStep");
    batch["tokens"] = batch["text"].to(at::kLong);
    batch.erase("text");
    batch["loss_mask"] = batch["loss_mask"].to(at::kFloat);
  } else {
    batch["tokens"] = required(raw, "input_ids", "BertTrainStep").to(at::kLong);
    batch["padding_mask"] = required(raw, "attention_mask", "BertTrainStep").to(at::kLong);
    if (const at::Tensor types = find_tensor(raw, "token_type_ids"); types.defined())
      batch["types"] = types.to(at::kLong);
    if (const at::Tensor labels = find_tensor(raw, "labels"); labels.defined()) {
      batch["labels"] = labels;
      if (args_.pretraining) batch["loss_mask"] = (labels != ignored).to(at::kFloat);
    }
    if (const at::Tensor order = find_tensor(raw, "next_sentence_label"); order.defined())
      batch["is_random"] = order.to(at::kLong);
  }
  batch["attention_mask"] = bert_extended_attention_mask(batch.at("padding_mask"));
  if (!args_.binary_head && args_.pretraining) batch.erase("types");
  leave_out_padding_rows(batch, raw);
  if (const at::Tensor rows = find_tensor(raw, "row_mask"); rows.defined()) {
    batch["row_mask"] = rows;
    // -1 is ignored by the second loss.
    if (batch.contains("is_random")) batch["is_random"] = batch["is_random"].masked_fill(rows == 0, -1);
  }
  return batch;
}

LossOut BertTrainStep::loss_func(const Batch& batch, const Tensors& outputs) {
  if (!args_.pretraining) return classifier_loss(batch, output(outputs, 0, "BertTrainStep"));
  const at::Tensor lm = masked_mean(output(outputs, 0, "BertTrainStep"), required(batch, "loss_mask", "BertTrainStep"));
  if (!args_.binary_head) return {lm, std::nullopt, averaged(batch, {{"lm loss", lm}}, args_.data)};
  const at::Tensor logits = output(outputs, 1, "BertTrainStep");
  const at::Tensor order = required(batch, "is_random", "BertTrainStep").reshape({-1}).to(at::kLong);
  const at::ScalarType type = at::promote_types(logits.scalar_type(), at::kFloat);
  const at::Tensor sum =
      at::cross_entropy_loss(logits.reshape({-1, 2}).to(type), order, {}, at::Reduction::Sum, /*ignore_index=*/-1);
  // Sentence order: logits [B, 2] against is_random [B], -1 for a row that only fills up.
  const at::Tensor sop = sum / (order != -1).sum().clamp_min(1).to(type);
  // L = L_lm + L_sop, each a mean over its own count: masked tokens, and rows.
  return {lm + sop, std::nullopt, averaged(batch, {{"lm loss", lm}, {"sop loss", sop}}, args_.data)};
}

/// Leaves out rows that only fill up the batch. Shapes: logits [B, labels], labels [B] or [B, labels] -> [].
LossOut BertTrainStep::classifier_loss(const Batch& batch, const at::Tensor& logits) const {
  at::Tensor labels = required(batch, "labels", "BertTrainStep");
  at::Tensor given = logits.to(at::promote_types(logits.scalar_type(), at::kFloat));
  if (const at::Tensor rows = find_tensor(batch, "row_mask"); rows.defined()) {
    const at::Tensor kept = rows.nonzero().view({-1});
    labels = labels.index_select(0, kept);
    given = given.index_select(0, kept);
  }
  at::Tensor loss;
  if (labels.numel() == 0) {
    // A zero with a graph: the ranks' backwards must match.
    loss = given.sum() * 0.0;
  } else if (args_.num_labels == 1) {
    // Chosen as in transformers: one label is a regression, integers are classes, real numbers are several labels at
    // once.
    loss = at::mse_loss(given.reshape({-1}), labels.reshape({-1}).to(given.scalar_type()));
  } else if (at::isIntegralType(labels.scalar_type(), /*includeBool=*/false)) {
    loss = at::cross_entropy_loss(given.reshape({-1, args_.num_labels}), labels.reshape({-1}).to(at::kLong));
  } else {
    loss = at::binary_cross_entropy_with_logits(given, labels.to(given.scalar_type()));
  }
  return {loss, std::nullopt, averaged(batch, {{"loss", loss}}, args_.data)};
}

Batch T5TrainStep::get_batch(DataIter& data) {
  const Batch raw = data.next();
  Batch batch;
  if (args_.megatron_dataset_flag) {
    batch = taken(raw, {"text_enc", "text_dec", "labels", "loss_mask", "enc_mask", "dec_mask", "enc_dec_mask"},
                  "T5TrainStep");
    // The data set has 1 where a query sees a key; Megatron-LM's models take true where it does not.
    for (const char* mask : {"enc_mask", "dec_mask", "enc_dec_mask"}) batch[mask] = batch[mask] < 0.5;
    batch["loss_mask"] = batch["loss_mask"].to(at::kFloat);
  } else {
    const at::Tensor labels = required(raw, "labels", "T5TrainStep").to(at::kLong);
    batch["text_enc"] = required(raw, "input_ids", "T5TrainStep").to(at::kLong);
    const at::Tensor given = find_tensor(raw, "decoder_input_ids");
    batch["text_dec"] = given.defined() ? given.to(at::kLong) : shifted_right(labels);
    batch["labels"] = labels;
    batch["loss_mask"] = (labels != ignored).to(at::kFloat);
    const at::Tensor real = required(raw, "attention_mask", "T5TrainStep");
    // [B, S, S], [1, T, T] and [B, T, S]. The decoder's mask is causality alone: loss_mask leaves its padding out.
    batch["enc_mask"] = t5_padding_mask(real, real);
    batch["dec_mask"] = t5_decoder_mask(labels.size(1));
    batch["enc_dec_mask"] = t5_padding_mask(at::ones_like(labels), real);
  }
  leave_out_padding_rows(batch, raw);
  return batch;
}

LossOut T5TrainStep::loss_func(const Batch& batch, const Tensors& outputs) {
  return masked_loss(batch, output(outputs, 0, "T5TrainStep"), required(batch, "loss_mask", "T5TrainStep"), args_);
}

std::shared_ptr<AbstractTrainStep> built_in_step(ModelKind model, const TrainStepArgs& args) {
  if (is_decoder_only(model)) return std::make_shared<GPTTrainStep>(args);
  if (model == ModelKind::bert) return std::make_shared<BertTrainStep>(args);
  return model == ModelKind::t5 ? std::make_shared<T5TrainStep>(args) : nullptr;
}

}  // namespace accrue::megatron
