// SPDX-License-Identifier: Apache-2.0
// Losses as sums. A mean hides its number of items; a sum and its count can be added over micro-batches and ranks and
// divided once, which is exact for ragged data too.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue {

/// Label that every loss ignores.
constexpr std::int64_t ignored_label = -100;

/// Sum of squared differences; the count is the number of elements. Shapes: predictions and targets with equally many
/// elements -> [].
at::Tensor squared_error_sum(const at::Tensor& predictions, const at::Tensor& targets);

/// Sum over rows of -log softmax(logits)[target], without rows whose target is -100.
/// Shapes: logits [..., classes], targets int64 with one element per row -> []. Half types are summed in float32.
/// Errors: throws std::invalid_argument if the numbers of rows differ.
at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& targets);

/// Errors: throws std::invalid_argument for a label outside the vocabulary that is not -100. Labels: int64, on the CPU.
void check_labels(const at::Tensor& labels, std::int64_t classes);

/// Type of sums: float64 for float64, float32 otherwise.
at::ScalarType accumulation_type(at::ScalarType type);

}  // namespace accrue
