// SPDX-License-Identifier: Apache-2.0
// Plain-operator losses for any dtype and device. The GPT on a CPU has its own fused path (fused_blocks.h).
#include "models/losses.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>

#include <stdexcept>
#include <string>

namespace accrue {

at::ScalarType accumulation_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

void check_labels(const at::Tensor& labels, std::int64_t classes) {
  const std::int64_t* const values = labels.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < labels.numel(); ++i)
    // The fused kernels index logits by label, unchecked.
    if (values[i] != ignored_label && (values[i] < 0 || values[i] >= classes))
      throw std::invalid_argument("label " + std::to_string(values[i]) + " lies outside the vocabulary of " +
                                  std::to_string(classes) + ": raise model.vocabulary or check the data");
}

// sum of (y - target)^2. Equally many numbers on both sides -> [].
at::Tensor squared_error_sum(const at::Tensor& predictions, const at::Tensor& targets) {
  if (predictions.numel() != targets.numel()) {
    throw std::invalid_argument("the model gives " + std::to_string(predictions.numel()) + " outputs for " +
                                std::to_string(targets.numel()) +
                                " targets: model.outputs must equal the columns of y");
  }
  const auto type = accumulation_type(predictions.scalar_type());
  return at::mse_loss(predictions.to(type), targets.to(type).view_as(predictions), at::Reduction::Sum);
}

// logits [..., V], targets [...] int64 -> [].
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor rows = logits.reshape({-1, logits.size(-1)});  // [N, V]
  if (rows.size(0) != targets.numel()) {
    throw std::invalid_argument("the model gives " + std::to_string(rows.size(0)) + " rows of logits for " +
                                std::to_string(targets.numel()) + " labels: each position takes one label");
  }
  // float16 ends at 65504, which a sum of losses soon passes, and bfloat16 keeps 8 bits: sum in float32.
  return at::cross_entropy_loss(rows.to(accumulation_type(logits.scalar_type())), targets.reshape({-1}).to(at::kLong),
                                {}, at::Reduction::Sum, ignored_label);
}

}  // namespace accrue
