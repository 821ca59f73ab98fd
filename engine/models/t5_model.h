// SPDX-License-Identifier: Apache-2.0
// An encoder and a decoder as Megatron-LM's T5 has them: pre-LN blocks, learned positions, one embedding of tokens and
// positions for both, and a head that is tied to the token embedding and has a bias. The encoder's tokens look at all
// others of their sample; the decoder's at those before them, and at the encoder's output. Parameters in order:
// token_embedding.weight [V, D], position_embedding.weight [the longer context, D], encoder.i as a GPT's blocks,
// encoder_norm, decoder.i (with norm_cross, cross.query, cross.key_value and cross.output before norm_2), final_norm,
// head.bias [V].
//
// In several parts, those before the split hold the encoder; they hand on its activations. From the split on two
// tensors go together, as rows of one: the decoder's activations, then the encoder's output, which stays as it is; its
// gradient comes back with what each part adds to it. Under sequence parallelism both are this rank's rows.
#pragma once

#include <memory>
#include <vector>

#include "accrue/models/model_part.h"
#include "accrue/parallel/recompute.h"
#include "accrue/parallel/tensor_axis.h"
#include "accrue/run/model_share.h"
#include "models/affine.h"
#include "models/gpt_operators.h"
#include "models/weight_init.h"

namespace accrue {

class T5Model final : public ModelPart {
 public:
  T5Model(const ModelSpec& spec, WeightSource& source, const ModelShare& share = {}, const TensorAxis& axis = {},
          const ParallelSpec& parallel = {});
  /// Encoder: its activations, at its end after its norm. Decoder: rows [R, D] of its activations and of the encoder's
  /// output; on the last part its activations alone. Reads batch.padding, which may be left out, and on the decoder's
  /// parts batch.decoder_inputs. Collective: the tensor axis.
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;
  at::Tensor empty_input(const Batch& batch) const override;
  bool says_what_it_uses() const override { return true; }
  /// This rank's, of the last part's outputs. Shapes: [B, T, D] -> [B, T, V / t].
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
  /// Rows of both tensors in, rows of both out.
  at::Tensor decoded(at::Tensor rows, const Batch& batch) const;
  at::Tensor joined(const at::Tensor& decoder, const at::Tensor& encoder) const;
  std::int64_t own_rows(const at::Tensor& tokens) const;
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
  std::shared_ptr<Embedding> token_embedding_;     ///< where a stack begins, and on the last part
  std::shared_ptr<Embedding> position_embedding_;  ///< where a stack begins
  std::vector<GptBlockWeights> encoder_;
  std::vector<DecoderBlock> decoder_;
  std::vector<BlockRange> encoder_again_;  ///< recomputed
  std::vector<BlockRange> decoder_again_;
  std::shared_ptr<Norm> encoder_norm_;
  std::shared_ptr<Norm> final_norm_;  ///< on the last part, as the bias
  at::Tensor head_bias_;
};

}  // namespace accrue
