// SPDX-License-Identifier: Apache-2.0
// A GPT-2 style decoder: pre-LN blocks, learned positions, GELU in its tanh form, the head tied to the token
// embedding. Parameters in order: token_embedding.weight [V, D], position_embedding.weight [T, D], then per block i
// blocks.i.norm_1, .attention.qkv, .attention.output, .norm_2, .mlp.up, .mlp.down (weight and bias each), final_norm.
#pragma once

#include <memory>
#include <vector>

#include "accrue/models/model_part.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

class GptModel final : public ModelPart {
 public:
  GptModel(const ModelSpec& spec, WeightSource& source);
  /// Shapes: [B, T, D], the last block's output before the final norm; loss() applies norm and head.
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;
  /// Shapes: tokens [B, T] int64 -> [B, T, V].
  at::Tensor logits(const at::Tensor& tokens);
  /// Uses plain operators even where the fused functions would do: for comparisons.
  void use_plain_operators(bool plain) { plain_ = plain; }

 private:
  at::Tensor embedded(const at::Tensor& tokens) const;
  /// The last block's output, before the final norm.
  at::Tensor hidden(const at::Tensor& tokens);
  at::Tensor head(const at::Tensor& x) const;
  bool fused(const at::Tensor& x) const;
  void add_block(torch::nn::Module& blocks, std::int64_t index, std::int64_t width);
  void init(WeightSource& source, WeightInit rule);

  std::int64_t heads_;
  std::int64_t context_;
  double dropout_;
  bool plain_ = false;
  std::shared_ptr<Embedding> token_embedding_;
  std::shared_ptr<Embedding> position_embedding_;
  std::vector<GptBlockWeights> blocks_;
  std::shared_ptr<Norm> final_norm_;
};

}  // namespace accrue
