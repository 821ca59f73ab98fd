// SPDX-License-Identifier: Apache-2.0
// A BERT as Megatron-LM builds it: pre-LN blocks with attention over all tokens of a sample, learned positions, segment
// types, a head for masked tokens that is tied to the token embedding, and one for the order of two segments.
// Parameters in order: token_embedding.weight [V, D], position_embedding.weight [T, D], type_embedding.weight [2, D]
// (with the binary head), the blocks as in a GPT, final_norm, head.bias [V], head.dense, head.norm, and with the binary
// head pooler [D, D] and binary_head [2, D].
//
// It is divided and recomputed like a GPT. Under sequence parallelism every rank pools all samples.
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

class BertModel final : public ModelPart {
 public:
  BertModel(const ModelSpec& spec, WeightSource& source, const ModelShare& share = {}, const TensorAxis& axis = {},
            const ParallelSpec& parallel = {});
  /// Returns the last block's output before the final norm. Reads batch.padding on every part, batch.types on the
  /// first; both are optional: no padding, one segment. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  /// Loss over masked tokens, and over samples with the binary head and batch.order.
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;
  at::Tensor empty_input(const Batch& batch) const override;
  bool says_what_it_uses() const override { return true; }
  at::Tensor logits(const at::Tensor& outputs) const override;
  at::Tensor token_losses(const at::Tensor& outputs, const Batch& batch) const override;

  // On the last part.
  /// The final norm's output. Shapes: as the outputs of forward().
  at::Tensor encoded(const at::Tensor& outputs) const;
  /// Pools the first position of each sample; every rank gets all samples. Shapes: encoded() of [B, T] tokens -> [B,
  /// D].
  at::Tensor pooled(const at::Tensor& encoded, std::int64_t positions) const;
  /// This rank's logits of the head for masked tokens. Shapes: encoded() [..., D] -> [..., V / t].
  at::Tensor masked_logits(const at::Tensor& encoded) const;
  /// Shapes: pooled [B, D] -> [B, 2].
  at::Tensor order_logits(const at::Tensor& pooled) const;

 private:
  at::Tensor embedded(const Batch& batch) const;
  at::Tensor through_blocks(at::Tensor x, const Batch& batch) const;
  double label_smoothing() const { return is_training() ? spec_.label_smoothing : 0.0; }

  ModelSpec spec_;
  ModelShare share_;
  TensorAxis axis_;
  ParallelSpec parallel_;
  std::vector<BlockRange> recomputed_;  ///< blocks of this part
  std::int64_t classes_;
  std::shared_ptr<Embedding> token_embedding_;     ///< on the first and the last part
  std::shared_ptr<Embedding> position_embedding_;  ///< on the first part
  std::shared_ptr<Embedding> type_embedding_;      ///< on the first part
  std::vector<GptBlockWeights> blocks_;
  // On the last part.
  std::shared_ptr<Norm> final_norm_;
  std::shared_ptr<Affine> dense_;
  std::shared_ptr<Norm> head_norm_;
  at::Tensor head_bias_;
  std::shared_ptr<Affine> pooler_;
  std::shared_ptr<Affine> binary_head_;
};

}  // namespace accrue
