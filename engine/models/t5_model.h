// SPDX-License-Identifier: Apache-2.0
// An encoder and a decoder like Megatron-LM's T5: pre-LN blocks, learned positions, one embedding of tokens and
// positions for both, and a head with a bias that is tied to the token embedding. The encoder's tokens attend to all
// tokens of their sample; the decoder's to earlier ones and to the encoder's output. Parameters in order:
// token_embedding.weight [V, D], position_embedding.weight [the longer context, D], encoder.i as a GPT's blocks,
// encoder_norm, decoder.i (with norm_cross, cross.query, cross.key_value and cross.output before norm_2), final_norm,
// head.bias [V].
//
// In several parts, those before the split hold the encoder and send its activations on. From the split on, two tensors
// are sent together as rows of one: the decoder's activations, and the unchanged encoder's output. The gradient of the
// latter comes back with each part's contribution added. Under sequence parallelism both are this rank's rows.
#pragma once

#include <memory>
#include <vector>

#include "accrue/models/model_part.h"
#include "accrue/parallel/recompute.h"
#include "accrue/parallel/tensor_axis.h"
#include "accrue/run/cost/model_share.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

class T5Model final : public ModelPart {
 public:
  T5Model(const ModelSpec& spec, WeightSource& source, const ModelShare& share = {}, const TensorAxis& axis = {},
          const ParallelSpec& parallel = {});
  /// Encoder: returns its activations, at its end after its norm. Decoder: rows [R, D] of its activations and of the
  /// encoder's output; on the last part its activations alone. Reads batch.padding, which is optional, and on the
  /// decoder's parts batch.decoder_inputs. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;
  at::Tensor empty_input(const Batch& batch) const override;
  bool says_what_it_uses() const override { return true; }
  /// This rank's logits of the last part's outputs. Shapes: [B, T, D] -> [B, T, V / t].
  at::Tensor logits(const at::Tensor& outputs) const override;
  at::Tensor token_losses(const at::Tensor& outputs, const Batch& batch) const override;

 private:
  struct DecoderBlock {
    GptBlockWeights block;
    CrossWeights cross;
  };

  bool encodes() const { return !encoder_.empty(); }
  bool decodes() const { return !decoder_.empty(); }
  bool starts_decoder() const;
  at::Tensor embedded(const at::Tensor& tokens, std::int64_t context, const char* key) const;
  at::Tensor encoded(at::Tensor x, const Batch& batch) const;
  /// Takes and returns the rows [R, D] of both tensors.
  at::Tensor decoded(at::Tensor rows, const Batch& batch) const;
  /// Stacks the decoder's rows over the encoder's: one tensor [R, D] for the next part.
  at::Tensor joined(const at::Tensor& decoder, const at::Tensor& encoder) const;
  /// Number of this rank's rows: B T, divided by the ranks under sequence parallelism.
  std::int64_t own_rows(const at::Tensor& tokens) const;
  /// Views rows [B T, D] as [B, T, D]; under sequence parallelism they remain rows.
  at::Tensor shaped(const at::Tensor& rows, const at::Tensor& tokens) const;
  double dropout() const { return is_training() ? spec_.dropout : 0.0; }
  double label_smoothing() const { return is_training() ? spec_.label_smoothing : 0.0; }
  BlockShape shape_of(const at::Tensor& tokens, bool causal) const;
  RecomputeOptions recomputation() const;

  ModelSpec spec_;
  ModelShare share_;
  TensorAxis axis_;
  ParallelSpec parallel_;
  std::int64_t classes_;
  std::shared_ptr<Embedding> token_embedding_;     ///< at the start of a stack, and on the last part
  std::shared_ptr<Embedding> position_embedding_;  ///< at the start of a stack
  std::vector<GptBlockWeights> encoder_;
  std::vector<DecoderBlock> decoder_;
  std::vector<BlockRange> encoder_again_;  ///< recomputed blocks
  std::vector<BlockRange> decoder_again_;
  std::shared_ptr<Norm> encoder_norm_;
  std::shared_ptr<Norm> final_norm_;  ///< on the last part, as the bias
  at::Tensor head_bias_;
};

}  // namespace accrue
