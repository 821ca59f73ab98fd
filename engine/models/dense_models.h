// SPDX-License-Identifier: Apache-2.0
// linear and mlp: small models on which accumulation is demonstrated and checked by hand.
// Shapes: I inputs and O outputs per row; rows are samples [B, I], or positions [B, T, I] of labelled sequences.
#pragma once

#include <memory>
#include <vector>

#include "accrue/models/model_part.h"
#include "models/affine.h"
#include "models/weight_init.h"

namespace accrue {

/// y = x weight^T + bias, over the last dim. Parameters: weight [outputs, inputs], bias [outputs].
class LinearModel final : public ModelPart {
 public:
  LinearModel(const ModelSpec& spec, WeightSource& source);
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;

 private:
  LossKind kind_;
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Linear layers with an activation between them. Parameters: layers.i.weight [its outputs, its inputs], layers.i.bias.
class MlpModel final : public ModelPart {
 public:
  MlpModel(const ModelSpec& spec, WeightSource& source);
  at::Tensor forward(const Batch& batch, const at::Tensor& received) override;
  LossSum loss(const at::Tensor& outputs, const Batch& batch) override;

 private:
  LossKind kind_;
  Activation activation_;
  bool batch_norm_;
  std::vector<std::shared_ptr<Affine>> layers_;
};

}  // namespace accrue
