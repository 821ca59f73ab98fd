// SPDX-License-Identifier: Apache-2.0
// Inputs of a train step: micro-batches as tensors by name, and the part of a model that a rank holds.
// Thread: training. Source: Megatron-LM's model chunks, which get the previous stage's output by set_input_tensor().
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

/// Tensors by name. Dim 0 has a row per sample, except in masks that all samples share.
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

/// Division of one parameter over the ranks of a replica.
struct ParameterPlace {
  /// Its name in the whole model, under which a state stores it. Empty: only this part knows it, so a state can be
  /// loaded only by a model in as many parts.
  std::string name;
  std::optional<TensorSlice> slice;  ///< with a name: its part of the whole parameter; unset: all of it

  /// The tensor-parallel ranks hold different parts of it. Otherwise a state stores the first tensor rank's values,
  /// which all ranks load.
  bool divided = false;
  bool shared = false;     ///< the last stage's copy of an embedding: counted once in the norm
  bool on_rows = false;    ///< under sequence parallelism a rank uses it on its own rows: gradients are summed
  bool tied = false;       ///< its gradient is summed over the stages that have the embedding
  bool positions = false;  ///< its gradient is summed over the stages that look up positions
};

/// One part of a model. An undivided model is both first and last part.
class ModelChunk : public torch::nn::Module {
 public:
  /// Sets the previous part's output; undefined on the first part. It requires a gradient.
  void set_input_tensor(at::Tensor received) { received_ = std::move(received); }
  const at::Tensor& input_tensor() const { return received_; }

  /// Returns the inputs of loss_func() on the last part, otherwise one tensor for the next part. Collective: the tensor
  /// axis.
  virtual Tensors forward(const Batch& batch) = 0;
  /// Returns a tensor with the shape and type that the previous part sends for this batch, to receive it. Errors:
  /// std::logic_error on a part that receives nothing.
  virtual at::Tensor empty_input(const Batch& batch) const;
  /// Returns the logits of the last part's outputs, if the model has any: [rows, positions, vocabulary / tensor ranks].
  virtual at::Tensor logits(const Tensors& outputs) const;
  virtual ParameterPlace place_of(const std::string& name) const;

 private:
  at::Tensor received_;
};

/// The part of the model that a provider must make. Names are those of Megatron-LM's providers.
struct ChunkPlace {
  std::int64_t parts = 1;
  std::int64_t part = 0;
  bool pre_process() const { return part == 0; }
  bool post_process() const { return part + 1 == parts; }
  bool add_encoder = true;
  bool add_decoder = true;
  std::optional<ModelSpec> model;  ///< the spec's model, if there is a spec
};
using ModelProvider = std::function<std::shared_ptr<ModelChunk>(const ChunkPlace& place)>;

/// Returns a batch of the run's data under the names of Megatron-LM's indexed data sets, with a row per sample.
Batch named_batch(const accrue::Batch& batch, ModelKind kind);

/// Wraps a part of one of Accrue's own models. A GPT reads "tokens" and "labels"; a BERT also "types", "padding_mask"
/// and "is_random"; a T5 "text_enc", "text_dec", "enc_mask" and "labels"; a linear model or an MLP "inputs". Outputs of
/// the last part: the loss of every token, [rows, positions], and for a BERT with a binary head the logits of the
/// segments' order, [rows, 2]; for a linear model or an MLP its predictions.
std::shared_ptr<ModelChunk> chunk_of(std::shared_ptr<ModelPart> part, const ModelSpec& model, const ModelShare& share);
/// Makes such a part. Errors: throws std::invalid_argument if the model cannot be divided this way.
std::shared_ptr<ModelChunk> model_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                        const TensorAxis& axis, const ParallelSpec& parallel = {});
/// Makes a part of a GPT. Errors: as model_chunk(), and for another kind of model.
std::shared_ptr<ModelChunk> gpt_chunk(const ModelSpec& model, std::uint64_t seed, const ModelShare& share,
                                      const TensorAxis& axis, const ParallelSpec& parallel = {});
/// Makes a BERT in one part with a classifier on its pooler. Its output is [rows, labels], for a BertTrainStep without
/// pretraining. Errors: throws std::invalid_argument for another model and for labels below 1.
std::shared_ptr<ModelChunk> bert_classifier_chunk(const ModelSpec& model, std::int64_t labels, std::uint64_t seed,
                                                  const TensorAxis& axis);

}  // namespace accrue::megatron
