// SPDX-License-Identifier: Apache-2.0
// Logits over a vocabulary from a table that is tied to the token embedding, and their loss, for models with a bias for
// each token.
#pragma once

#include "accrue/models/batch.h"
#include "accrue/parallel/tensor_axis.h"

namespace accrue {

/// x table^T + bias. A table of one rank may have more rows than there are classes: those are left out.
/// Shapes: x [..., D] or rows of it under sequence parallelism, table [V / t, D], bias [V / t] -> [..., V / t].
/// Collective: the tensor axis, in backward too.
at::Tensor token_logits(const at::Tensor& x, const at::Tensor& table, const at::Tensor& bias, std::int64_t classes,
                        const TensorAxis& axis);

/// Sum of the cross entropies of such logits, smoothed as vocab_parallel_cross_entropy() does; targets of -100 are
/// ignored. Shapes: targets [B, T] int64 -> [], the same on all ranks. Collective: the tensor axis. Errors: throws
/// std::invalid_argument for a target outside the vocabulary.
at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes, const TensorAxis& axis,
                      double label_smoothing);

/// The cross entropy of every token; a target of -100 has some finite one. Shapes: targets [B, T] -> [B, T].
/// Collective: the tensor axis.
at::Tensor losses_of_tokens(const at::Tensor& logits, const at::Tensor& targets, std::int64_t classes,
                            const TensorAxis& axis, double label_smoothing);

/// What attention adds to its scores: 0 where a position holds a token, and what leaves it out where it is padding.
/// A row without any token stays finite. Shapes: padding [B, T], 1 for a token -> [B, 1, 1, T].
at::Tensor padding_scores(const at::Tensor& padding, at::ScalarType type);

}  // namespace accrue
