// SPDX-License-Identifier: Apache-2.0
#include "models/token_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/rsub.h>

#include "accrue/parallel/tensor_layers.h"
#include "models/losses.h"

namespace accrue {

// [B, T, D] -> [B, T, V / t], or on one rank [B, T, V] without padding rows. Of rows [B T / t, D] it gathers all.
at::Tensor token_logits(const at::Tensor& x, const at::Tensor& table, const at::Tensor& bias, std::int64_t classes,
                        const TensorAxis& axis) {
  if (axis.split() || table.size(0) == classes) return column_parallel_linear(x, table, bias, axis);
  return column_parallel_linear(x, table.narrow(0, 0, classes), bias.narrow(0, 0, classes), axis);
}

// logits [B, T, V / t] or rows [B T, V / t], targets [B, T] -> [].
at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes, const TensorAxis& axis,
                      double label_smoothing) {
  const at::Tensor labels = targets.reshape({-1}).to(at::kLong).contiguous();
  // On a device the check would have to wait for the labels.
  if (labels.is_cpu()) check_labels(labels, classes);
  if (!axis.split() && label_smoothing == 0.0) return cross_entropy_sum(logits, labels);
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)});  // [B T, V / t]
  const at::Tensor losses = vocab_parallel_cross_entropy(rows, labels, axis, label_smoothing, classes);
  // An ignored target has a finite loss that means nothing (no rank holds it).
  return losses.masked_fill(labels == ignored_label, 0.0).sum();
}

// [B, T, V / t] or rows [B T, V / t] -> [B, T].
at::Tensor losses_of_tokens(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes,
                            const TensorAxis& axis, double label_smoothing) {
  return vocab_parallel_cross_entropy(logits.reshape({targets.size(0), targets.size(1), -1}), targets.to(at::kLong),
                                      axis, label_smoothing, classes);
}

// (1 - padding) * -10000, as Megatron-LM fills masked scores. [B, T] -> [B, 1, 1, T], for all heads and queries.
at::Tensor padding_scores(const at::Tensor& padding, at::ScalarType type) {
  // Its exponential is 0 in every type. Minus infinity would make NaN of a row without a token.
  constexpr double left_out = -10000.0;
  return at::rsub(padding.to(type), 1.0).mul(left_out).unsqueeze(1).unsqueeze(1);
}

}  // namespace accrue
