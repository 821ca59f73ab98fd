// SPDX-License-Identifier: Apache-2.0
// Train steps: what a batch of a model type is, how it passes through a part of the model, and what its loss is. Derive
// from AbstractTrainStep for a step of your own. Thread: training.
// Source: Accelerate 1.9.0, utils/megatron_lm.py, with the losses of Megatron-LM core 0.12.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/comm/communicator.h"
#include "accrue/megatron/model_chunk.h"

namespace accrue::megatron {

/// Values that a step reports, in its order. A tensor [2] is a numerator and a denominator.
using LossReport = std::vector<std::pair<std::string, at::Tensor>>;

struct LossOut {
  at::Tensor loss;  ///< [], with a graph: a mean, or a sum where num_tokens is set
  std::optional<std::int64_t> num_tokens;
  LossReport report;
};

/// How much a micro-batch counts in the mean over the micro-batches of all replicas: 1, and of a last batch that was
/// filled up (LastBatch::pad) as many times that as it has more real rows than the mean. A loader gives it as
/// "row_weight", a factor for each row. Losses are weighed by it; a step weighs the means that it reports itself.
double row_share(const Batch& batch);

struct ForwardOut {
  Batch batch;
  Tensors outputs;
};

class AbstractTrainStep {
 public:
  explicit AbstractTrainStep(std::string name) : name_(std::move(name)) {}
  virtual ~AbstractTrainStep() = default;
  AbstractTrainStep(const AbstractTrainStep&) = delete;
  AbstractTrainStep& operator=(const AbstractTrainStep&) = delete;

  const std::string& name() const { return name_; }
  /// The next micro-batch in the model's terms. It is a function of what the iterator gives, the same on all tensor
  /// ranks: a stage may ask twice, first for shapes.
  virtual Batch get_batch(DataIter& data) = 0;
  /// Takes a batch through one part.
  virtual ForwardOut forward_step(DataIter& data, ModelChunk& chunk, int microbatch);
  /// On the last stage only. Collective: the data axis.
  virtual LossOut loss_func(const Batch& batch, const Tensors& outputs) = 0;

 private:
  std::string name_;
};

/// Options of the built-in steps.
struct TrainStepArgs {
  bool megatron_dataset_flag = false;     ///< batches are those of indexed datasets
  std::optional<std::int64_t> eod_token;  ///< unset: none is known, and none is masked
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool eod_mask_loss = false;  ///< the loader path masks a known one in any case
  bool calculate_per_token_loss = false;
  bool pretraining = true;  ///< BERT: false for a classifier's loss
  bool binary_head = true;  ///< BERT: whether two segments are in order
  std::int64_t num_labels = 2;
  Communicator* data = nullptr;  ///< the axis that reports average over; null: one rank
};

/// Next-token prediction. A loader's batch has input_ids, and may have labels (-100 does not count) and attention_mask
/// (0 is padding, which does not count): both are used. An indexed one has text [rows, positions + 1], and, where
/// documents begin again in it, the position of each token and the first that it sees, "positions" and
/// "document_starts". Of the model's outputs the first is the loss of every token. Reports "lm loss".
class GPTTrainStep final : public AbstractTrainStep {
 public:
  explicit GPTTrainStep(const TrainStepArgs& args) : AbstractTrainStep("GPTTrainStep"), args_(args) {}
  Batch get_batch(DataIter& data) override;
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override;

 private:
  TrainStepArgs args_;
};

/// Masked tokens and, with the binary head, sentence order; or a classifier. A loader's batch has input_ids,
/// attention_mask, and may have token_type_ids, labels, next_sentence_label. Outputs: the loss of every token and the
/// logits [rows, 2]; a classifier's logits. Reports "lm loss" and "sop loss", or "loss".
class BertTrainStep final : public AbstractTrainStep {
 public:
  explicit BertTrainStep(const TrainStepArgs& args) : AbstractTrainStep("BertTrainStep"), args_(args) {}
  Batch get_batch(DataIter& data) override;
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override;

 private:
  LossOut classifier_loss(const Batch& batch, const at::Tensor& logits) const;
  TrainStepArgs args_;
};

/// An encoder and a decoder. A loader's batch has input_ids, attention_mask, labels, and may have decoder_input_ids;
/// else they are the labels moved right. Reports "lm loss".
class T5TrainStep final : public AbstractTrainStep {
 public:
  explicit T5TrainStep(const TrainStepArgs& args) : AbstractTrainStep("T5TrainStep"), args_(args) {}
  Batch get_batch(DataIter& data) override;
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override;

 private:
  TrainStepArgs args_;
};

/// The built-in step of a transformer; null for another model.
std::shared_ptr<AbstractTrainStep> built_in_step(ModelKind model, const TrainStepArgs& args);

}  // namespace accrue::megatron
