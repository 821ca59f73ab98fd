// SPDX-License-Identifier: Apache-2.0
// A BERT that is fine-tuned: the encoder of a pretrained one, its pooler, and a linear layer that answers with labels.
// The encoder's parameters have the names of a final/model.safetensors, under "bert.".
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
  /// `spec`: of kind bert, with the binary head, to whose training the pooler belongs. Weights are drawn from `seed`,
  /// the same on every rank; the axis divides the encoder, and every rank has the whole of the new layer.
  /// Errors: throws std::invalid_argument where the spec is not that of a BERT with a pooler, or cannot be divided.
  BertClassifier(const ModelSpec& spec, std::int64_t labels, std::uint64_t seed, const TensorAxis& axis = {});

  /// Reads inputs, padding and types. Shapes: [B, T] -> [B, labels]. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch);
  /// By the number of labels and the type of the targets, as Megatron-LM's fine-tuning: one label, the mean squared
  /// error; several and whole numbers [B], the cross entropy; else, [B, labels] of 0 and 1, the binary cross entropy of
  /// each. A mean, []. Errors: throws std::invalid_argument where the targets' shape does not fit.
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
