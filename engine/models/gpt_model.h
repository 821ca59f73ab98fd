// SPDX-License-Identifier: Apache-2.0
// A decoder of GPT-2's or Llama's form (BlockForm): pre-norm blocks, and a head that is the token embedding or a matrix
// of its own. Parameters in order: token_embedding.weight [V, D], position_embedding.weight [T, D], then per block i
// blocks.i.norm_1, .attention.qkv or .grouped_qkv, .attention.output, .norm_2, .mlp.up or .gate_up, .mlp.down (weight
// and bias each), final_norm, head.weight [V, D]; those that the form does not have are missing.
//
// A divided model is one rank's share of one part (model_share.h): t tensor-parallel ranks hold V / t, 3 D / t, 4 D / t
// and H / t. Activations between blocks are [B, T, D], or under sequence parallelism this rank's rows [B T / t, D].
//
// With recomputation (parallel.recompute), less of each block is stored and backward computes the rest a second time.
#pragma once

#include <memory>
#include <vector>

#include "accrue/models/model_part.h"
#include "accrue/parallel/tensor_axis.h"
#include "accrue/run/cost/model_share.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

class GptModel final : public ModelPart {
 public:
  /// Of `parallel` it reads the recomputation options.
  GptModel(const ModelSpec& spec, WeightSource& source, const ModelShare& share = {}, const TensorAxis& axis = {},
           const ParallelSpec& parallel = {});
  /// Returns the last block's output before the final norm; loss() applies norm and head. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;
  at::Tensor empty_input(const Batch& batch) const override;
  bool says_what_it_uses() const override { return true; }
  at::Tensor logits(const at::Tensor& outputs) const override { return head(outputs); }
  at::Tensor token_losses(const at::Tensor& outputs, const Batch& batch) const override;
  /// Returns the logits of an undivided model. Shapes: tokens [B, T] int64 -> [B, T, V].
  at::Tensor logits_of(const at::Tensor& tokens);
  /// Uses plain operators even if the fused functions support the model, for comparisons.
  void use_plain_operators(bool plain) { plain_ = plain; }

 private:
  /// Sum of the token and position embeddings, [B, T, D]. positions: as in Batch.
  at::Tensor embedded(const at::Tensor& tokens, const at::Tensor& positions = {}) const;
  /// Runs x [B, T, D] through this part's blocks. positions: as in Batch; mask: as in BlockShape.
  at::Tensor through_blocks(at::Tensor x, std::int64_t length, const at::Tensor& positions,
                            const at::Tensor& mask = {}) const;
  /// Of rotary positions; undefined for others.
  Rotation rotation_of(std::int64_t length, const at::Tensor& positions, const at::Tensor& x) const;
  void uses_head() const;
  /// Rows of this rank's token embedding that give logits.
  at::Tensor table() const;
  /// This rank's logits.
  at::Tensor head(const at::Tensor& x) const;
  double label_smoothing() const { return is_training() ? spec_.label_smoothing : 0.0; }

  ModelSpec spec_;
  ModelShare share_;
  TensorAxis axis_;
  BlockForm form_;
  RecomputeKind recompute_;
  bool distribute_;                     ///< inputs of recomputed blocks are distributed over the tensor axis
  std::vector<BlockRange> recomputed_;  ///< blocks of this part
  std::int64_t classes_;
  bool plain_ = false;
  at::Tensor turns_;                               ///< of rotary positions, radians per position
  std::shared_ptr<Embedding> token_embedding_;     ///< on the first and, if the head is tied, the last part
  std::shared_ptr<Embedding> position_embedding_;  ///< learned positions: on the first part
  std::vector<GptBlockWeights> blocks_;
  std::shared_ptr<Norm> final_norm_;  ///< on the last part
  std::shared_ptr<Embedding> head_;   ///< on the last part, unless it is the token embedding
};

}  // namespace accrue
