// SPDX-License-Identifier: Apache-2.0
#include "models/dense_models.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "accrue/parallel/tensor_layers.h"
#include "accrue/run/fields/block_form.h"
#include "models/losses.h"

namespace accrue {

namespace {

// Outputs [..., O] against class labels [...], or against numbers [..., O]. Returns the sum, [].
LossSum loss_of(LossKind kind, const at::Tensor& outputs, const Batch& batch) {
  const bool labels = kind == LossKind::cross_entropy;
  return {labels ? cross_entropy_sum(outputs, batch.targets) : squared_error_sum(outputs, batch.targets), batch.items};
}

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::relu:
      return at::relu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::tanh:
      return at::tanh(x);
    case Activation::gelu_tanh:
    case Activation::swiglu:
      break;  // of blocks
  }
  return x;
}

/// (x - mean) / sqrt(variance + eps) per column, over all rows of the micro-batch, in training and in evaluation. No
/// weight, bias or running statistics: it shows that the statistics of N micro-batches are not those of one large
/// batch. [..., width] -> [..., width].
at::Tensor normalize_batch(const at::Tensor& x) {
  return at::batch_norm(x.reshape({-1, x.size(-1)}), {}, {}, {}, {}, /*training=*/true, /*momentum=*/0.1,
                        /*eps=*/1e-5, /*cudnn_enabled=*/false)
      .view_as(x);
}

}  // namespace

// weight [O, I], bias [O].
LinearModel::LinearModel(const ModelSpec& spec, WeightSource& source) : kind_(spec.loss.value_or(LossKind::mse)) {
  weight_ = register_parameter("weight", at::zeros({spec.outputs, spec.inputs}));
  if (layers_have_bias(spec)) bias_ = register_parameter("bias", at::zeros({spec.outputs}));
  init_linear(source, spec.init, weight_, bias_);
}

// [..., I] -> [..., O].
at::Tensor LinearModel::forward(const Batch& batch, const at::Tensor&) {
  return accumulating_linear(batch.inputs.to(weight_.scalar_type()), weight_, bias_);
}

LossSum LinearModel::loss(const at::Tensor& outputs, const Batch& batch) {
  return loss_of(kind_, outputs, batch);
}

// Layer i maps widths[i] to widths[i + 1]: weight [widths[i + 1], widths[i]].
MlpModel::MlpModel(const ModelSpec& spec, WeightSource& source)
    : kind_(spec.loss.value_or(LossKind::mse)), activation_(hidden_activation(spec)), batch_norm_(spec.batch_norm) {
  std::vector<std::int64_t> widths{spec.inputs};
  widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(spec.outputs);
  auto layers = register_module("layers", std::make_shared<torch::nn::Module>());
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    auto layer = std::make_shared<Affine>(widths[i], widths[i + 1], layers_have_bias(spec));
    init_linear(source, spec.init, layer->weight, layer->bias);
    layers_.push_back(layers->register_module(std::to_string(i), layer));
  }
}

// [..., I] -> [..., O].
at::Tensor MlpModel::forward(const Batch& batch, const at::Tensor&) {
  at::Tensor x = batch.inputs.to(layers_.front()->weight.scalar_type());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = accumulating_linear(x, layers_[i]->weight, layers_[i]->bias);
    // The last layer has no activation: its outputs are logits or predictions.
    if (i + 1 < layers_.size()) x = activate(activation_, batch_norm_ ? normalize_batch(x) : x);
  }
  return x;
}

LossSum MlpModel::loss(const at::Tensor& outputs, const Batch& batch) {
  return loss_of(kind_, outputs, batch);
}

}  // namespace accrue
