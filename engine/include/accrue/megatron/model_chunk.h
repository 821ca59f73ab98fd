// SPDX-License-Identifier: Apache-2.0
// Inputs of a train step: micro-batches as tensors by name, and the part of a model that a rank holds.
// Thread: training. Source: Megatron-LM's model chunks, which take what the stage before sent by set_input_tensor().
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/checkpoint/tensor_slice.h"
#include "accrue/models/model_part.h"

namespace accrue::megatron {

/// Tensors by name; each has a row per sample in dim 0, but for masks that all samples share.
using Batch = std::map<std::string, at::Tensor>;
using Tensors = std::vector<at::Tensor>;

/// Returns a tensor of the batch; undefined if it has none of that name.
at::Tensor find_tensor(const Batch& batch, const char* name);

/// Micro-batches in order, each once.
class DataIter {
 public:
  using Next = std::function<std::optional<Batch>()>;
  explicit DataIter(Next next) : next_(std::move(next)) {}
  explicit DataIter(std::vector<Batch> batches);
  /// Errors: throws std::out_of_range at the end.
  Batch next();

 private:
  Next next_;
};

/// How the ranks of a replica hold one parameter.
struct ParameterPlace {
  /// In a state: what it is called in the whole model. Empty: known to this part alone, and a state has it only where
  /// the model is divided into as many parts.
  std::string name;
  std::optional<TensorSlice> slice;  ///< of one with a name, which part of the whole this is; unset: all of it

  /// The tensor-parallel ranks hold different parts of it. Of a parameter that is not said to be divided, a state keeps
  /// the first tensor rank's values, and all ranks read these.
  bool divided = false;
  bool shared = false;     ///< the last stage's copy of an embedding: counted once in the norm
  bool on_rows = false;    ///< under sequence parallelism a rank uses it on its own rows: gradients are summed
  bool tied = false;       ///< its gradient is summed over the stages that have the embedding
  bool positions = false;  ///< its gradient is summed over the stages that look up positions
};

/// One part of a model. A model in one part is first and last at once.
class ModelChunk : public torch::nn::Module {
 public:
  /// Input from the part before; undefined on the first part. It requires a gradient.
  void set_input_tensor(at::Tensor received) { received_ = std::move(received); }
  const at::Tensor& input_tensor() const { return received_; }

  /// On the last part what loss_func() takes, else one tensor for the next part. Collective: the tensor axis.
  virtual Tensors forward(const Batch& batch) = 0;
  /// To receive in: shape and type of what the part before sends for this batch. Errors: std::logic_error on a part
  /// that receives nothing.
  virtual at::Tensor empty_input(const Batch& batch) const;
  /// Of the last part's outputs, where there are any: [rows, positions, vocabulary / tensor ranks].
  virtual at::Tensor logits(const Tensors& outputs) const;
  virtual ParameterPlace place_of(const std::string& name) const;

 private:
  at::Tensor received_;
};

/// Which part of the model a provider is asked for, under the names of Megatron-LM's providers.
struct ChunkPlace {
  std::int64_t parts = 1;
  std::int64_t part = 0;
  bool pre_process() const { return part == 0; }
  bool post_process() const { return part + 1 == parts; }
  bool add_encoder = true;
  bool add_decoder = true;
  std::optional<ModelSpec> model;  ///< the model as a spec has it, if there is a spec
};
using ModelProvider = std::function<std::shared_ptr<ModelChunk>(const ChunkPlace& place)>;

/// A batch of the run's data under the names that an indexed data set of Megatron's has, each with a row per sample.
Batch named_batch(const accrue::Batch& batch, ModelKind kind);

/// A part of one of Accrue's own models. Of a GPT it takes "tokens" and "labels", of a BERT also "types",
/// "padding_mask" and "is_random", of a T5 "text_enc", "text_dec", "enc_mask" and "labels", of a linear model or an MLP
/// "inputs". The last part's outputs: the loss of every token, [rows, positions], and, of a BERT with a binary head,
/// the logits of the segments' order, [rows, 2]; of a linear model or an MLP what it predicts.
std::shared_ptr<ModelChunk> chunk_of(std::shared_ptr<ModelPart> part, const ModelSpec& model, const ModelShare& share);
/// The same, made. Errors: throws std::invalid_argument where the model cannot be divided so.
std::shared_ptr<ModelChunk> model_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                        const TensorAxis& axis, const ParallelSpec& parallel = {});
/// Of a GPT.
std::shared_ptr<ModelChunk> gpt_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                      const TensorAxis& axis, const ParallelSpec& parallel = {});
/// A BERT with a classifier on its pooler, in one part: its output is [rows, labels] (BertTrainStep without
/// pretraining). Errors: throws std::invalid_argument for another model and for labels below 1.
std::shared_ptr<ModelChunk> bert_classifier_chunk(const ModelSpec& model, std::int64_t labels, std::uint64_t seed,
                                                  const TensorAxis& axis);

}  // namespace accrue::megatron
