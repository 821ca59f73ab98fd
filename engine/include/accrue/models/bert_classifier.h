// SPDX-License-Identifier: Apache-2.0
// A BERT for fine-tuning: a pretrained encoder, its pooler, and a linear layer that gives labels. The encoder's
// parameters have the names of a final/model.safetensors, under "bert.".
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "accrue/models/model_part.h"

namespace accrue {

class BertModel;

/// Thread: training.
class BertClassifier : public torch::nn::Module {
 public:
  /// `spec`: of kind bert, with the binary head, which trains the pooler. Weights are drawn from `seed`, equal on every
  /// rank. The axis divides the encoder; every rank has the whole new layer. Errors: throws std::invalid_argument if
  /// the spec is not a BERT with a pooler, or cannot be divided.
  BertClassifier(const ModelSpec& spec, std::int64_t labels, std::uint64_t seed, const TensorAxis& axis = {});

  /// Reads inputs, padding and types. Shapes: [B, T] -> [B, labels]. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch);
  /// Chooses by the number of labels and the type of the targets, as Megatron-LM's fine-tuning: one label, the mean
  /// squared error; several labels and integers [B], the cross entropy; else [B, labels] of 0 and 1, the binary cross
  /// entropy of each. Returns a mean, []. Errors: throws std::invalid_argument if the targets' shape does not match.
  at::Tensor loss(const at::Tensor& logits, const at::Tensor& targets) const;

  std::int64_t labels() const { return labels_; }

 private:
  std::int64_t labels_;
  double dropout_;
  std::shared_ptr<BertModel> bert_;
  at::Tensor weight_;  // [labels, D]
  at::Tensor bias_;    // [labels]
};

}  // namespace accrue
