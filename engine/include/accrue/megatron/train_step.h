// SPDX-License-Identifier: Apache-2.0
// Train steps. A step defines the batch of a model type, its way through a part of the model, and its loss. Derive from
// AbstractTrainStep for a step of your own. Thread: training.
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
  at::Tensor loss;  ///< [], with a graph: a mean, or a sum if num_tokens is set
  std::optional<std::int64_t> num_tokens;
  LossReport report;
};

/// Returns the weight of a micro-batch in the mean over the micro-batches of all replicas: 1, except in a last batch
/// that was filled up (LastBatch::pad), in which it is the ratio of its real rows to their mean number. A loader stores
/// it as "row_weight", a factor per row. Losses are multiplied by it; a step must weight the means that it reports
/// itself.
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
  /// Returns the next micro-batch under the model's names. It must depend only on the iterator's data and be the same
  /// on all tensor ranks; a stage may call it twice, first for shapes.
  virtual Batch get_batch(DataIter& data) = 0;
  /// Runs a batch through one part of the model.
  virtual ForwardOut forward_step(DataIter& data, ModelChunk& chunk, int microbatch);
  /// Called on the last stage only. Collective: the data axis.
  virtual LossOut loss_func(const Batch& batch, const Tensors& outputs) = 0;

 private:
  std::string name_;
};

/// Options of the built-in steps.
struct TrainStepArgs {
  bool megatron_dataset_flag = false;     ///< batches are those of indexed datasets
  std::optional<std::int64_t> eod_token;  ///< unset: unknown, so none is masked
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  bool eod_mask_loss = false;  ///< batches of a loader always mask a known one
  bool calculate_per_token_loss = false;
  bool pretraining = true;  ///< BERT: false for a classifier's loss
  bool binary_head = true;  ///< BERT: predict whether two segments are in order
  std::int64_t num_labels = 2;
  Communicator* data = nullptr;  ///< axis over which reports are averaged; null: one rank
};

/// Next-token prediction. A loader's batch has input_ids and optionally labels (-100 is ignored) and attention_mask (0
/// is padding and ignored). An indexed one has text [rows, positions + 1] and, if documents restart in it, "positions",
/// the position of each token, and "document_starts", the first token that it sees. The model's first output is the
/// loss of every token. Reports "lm loss".
class GPTTrainStep final : public AbstractTrainStep {
 public:
  explicit GPTTrainStep(const TrainStepArgs& args) : AbstractTrainStep("GPTTrainStep"), args_(args) {}
  Batch get_batch(DataIter& data) override;
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override;

 private:
  TrainStepArgs args_;
};

/// Masked tokens and, with the binary head, sentence order; or a classifier. A loader's batch has input_ids and
/// attention_mask, and optionally token_type_ids, labels and next_sentence_label. Outputs of the model: the loss of
/// every token and the logits [rows, 2], or a classifier's logits. Reports "lm loss" and "sop loss", or "loss".
class BertTrainStep final : public AbstractTrainStep {
 public:
  explicit BertTrainStep(const TrainStepArgs& args) : AbstractTrainStep("BertTrainStep"), args_(args) {}
  Batch get_batch(DataIter& data) override;
  LossOut loss_func(const Batch& batch, const Tensors& outputs) override;

 private:
  LossOut classifier_loss(const Batch& batch, const at::Tensor& logits) const;
  TrainStepArgs args_;
};

/// An encoder and a decoder. A loader's batch has input_ids, attention_mask and labels, and optionally
/// decoder_input_ids, by default the labels moved right. Reports "lm loss".
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
