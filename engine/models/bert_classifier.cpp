// SPDX-License-Identifier: Apache-2.0
// Source: Megatron-LM's fine-tuning model for classification: dropout of the pooled state, then one linear layer.
// Shapes: B samples, T positions, D width.
#include "accrue/models/bert_classifier.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <string>

#include "models/bert_model.h"
#include "models/losses.h"

namespace accrue {

namespace {

constexpr double classifier_std = 0.02;  // Megatron-LM's default of init_method_std

void check_spec(const ModelSpec& spec, std::int64_t labels, const TensorAxis& axis) {
  if (spec.kind != ModelKind::bert || !spec.binary_head)
    throw std::invalid_argument("a classifier needs the pooler of a BERT: model.kind \"bert\", model.binary_head true");
  if (labels < 1) throw std::invalid_argument("a classifier answers with one label at least");
  if (const std::string wrong = check_share(spec, axis.size(), 1); !wrong.empty()) throw std::invalid_argument(wrong);
}

}  // namespace

BertClassifier::BertClassifier(const ModelSpec& spec, std::int64_t labels, std::uint64_t seed, const TensorAxis& axis)
    : labels_(labels), dropout_(spec.dropout) {
  check_spec(spec, labels, axis);
  WeightSource source(seed);
  bert_ = register_module(
      "bert", std::make_shared<BertModel>(spec, source,
                                          ModelShare{.tensor_ranks = axis.size(), .tensor_rank = axis.rank()}, axis));
  at::Tensor weight = at::empty({labels, spec.width});
  source.normal(weight, classifier_std);
  weight_ = register_parameter("classifier_weight", weight);
  bias_ = register_parameter("classifier_bias", at::zeros({labels}));
  if (spec.dtype != Dtype::float32) to(scalar_type(spec.dtype));
}

// [B, T] int64 -> [B, labels].
at::Tensor BertClassifier::forward(const Batch& batch) {
  // [B, T, D], or this rank's rows [B T / t, D]; pooled has all samples: [B, D].
  const at::Tensor states = bert_->encoded(bert_->forward(batch, {}));
  const at::Tensor pooled = bert_->pooled(states, batch.inputs.size(1));
  return at::linear(at::dropout(pooled, dropout_, is_training()), weight_, bias_);
}

// logits [B, labels] -> []. Half types are averaged in float32, as a sum over the batch would lose their last digits.
at::Tensor BertClassifier::loss(const at::Tensor& logits, const at::Tensor& targets) const {
  const auto type = accumulation_type(logits.scalar_type());
  const bool classes = labels_ > 1 && at::isIntegralType(targets.scalar_type(), /*includeBool=*/false);
  // One target per sample for classes and for a regression; otherwise one per logit.
  if (targets.numel() != (classes || labels_ == 1 ? logits.size(0) : logits.numel()))
    throw std::invalid_argument(std::to_string(targets.numel()) + " targets for " + std::to_string(logits.size(0)) +
                                " samples of " + std::to_string(labels_) + " labels");
  if (classes) return at::cross_entropy_loss(logits.to(type), targets.reshape({-1}).to(at::kLong));
  // [B, labels]
  const at::Tensor wanted = targets.to(type).view_as(logits);
  return labels_ == 1 ? at::mse_loss(logits.to(type), wanted)
                      : at::binary_cross_entropy_with_logits(logits.to(type), wanted);
}

}  // namespace accrue
