// SPDX-License-Identifier: Apache-2.0
// Logits over a vocabulary from a table that is tied to the token embedding, and their loss, for models with a bias per
// token.
#pragma once

#include "accrue/models/batch.h"
#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// x table^T + bias. The table of a single rank may have more rows than there are classes; these are ignored.
/// Shapes: x [..., D] or rows of it under sequence parallelism, table [V / t, D], bias [V / t] -> [..., V / t].
/// Collective: the tensor axis, in backward too.
at::Tensor token_logits(const at::Tensor& x, const at::Tensor& table, const at::Tensor& bias, std::int64_t classes,
                        const TensorAxis& axis);

/// Sum of the cross entropies of such logits, smoothed as in vocab_parallel_cross_entropy(); targets of -100 are
/// ignored. Shapes: targets [B, T] int64 -> [], the same on all ranks. Collective: the tensor axis. Errors: throws
/// std::invalid_argument for a target outside the vocabulary.
at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes, const TensorAxis& axis,
                      double label_smoothing);

/// Cross entropy of every token; finite but meaningless for a target of -100. Shapes: targets [B, T] -> [B, T].
/// Collective: the tensor axis.
at::Tensor losses_of_tokens(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes,
                            const TensorAxis& axis, double label_smoothing);

/// Returns the term that attention adds to its scores: 0 for a token, and a large negative number for padding. A row
/// without any token stays finite. Shapes: padding [B, T], 1 for a token -> [B, 1, 1, T].
at::Tensor padding_scores(const at::Tensor& padding, at::ScalarType type);

}  // namespace accrue
