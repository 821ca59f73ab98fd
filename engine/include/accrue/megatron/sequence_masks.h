// SPDX-License-Identifier: Apache-2.0
// Masks and positions of token sequences, as plain functions of tensors. Everywhere true means masked out.
// Thread: any. Source: Megatron-LM, get_ltor_masks_and_position_ids, BERT's extended mask, T5's three masks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace accrue::megatron {

struct LeftToRightOptions {
  std::int64_t eod_token = 0;
  bool reset_position_ids = false;    ///< positions start again after an end of document
  bool reset_attention_mask = false;  ///< tokens after it see neither it nor anything before it
  bool eod_mask_loss = false;         ///< it does not count in the loss
};

struct LeftToRight {
  at::Tensor attention_mask;  ///< bool [1 or rows, 1, positions, positions]
  at::Tensor loss_mask;       ///< float32 [rows, positions]
  at::Tensor position_ids;    ///< int64 [rows, positions]
  /// With reset_attention_mask, the first token that each token sees: int64 [rows, positions]. Otherwise undefined.
  at::Tensor document_starts;
};

/// Shapes: tokens int64 [rows, positions].
LeftToRight get_ltor_masks_and_position_ids(const at::Tensor& tokens, const LeftToRightOptions& options);

/// Shapes: padding [rows, positions], 1 for a token -> bool [rows, 1, positions, positions].
at::Tensor bert_extended_attention_mask(const at::Tensor& padding);

/// Returns the causal mask of a decoder: bool [1, positions, positions].
at::Tensor t5_decoder_mask(std::int64_t positions);
/// Masks padding on both sides. Shapes: queries [rows, queries], keys [rows, keys], 1 for a token -> bool
/// [rows, queries, keys].
at::Tensor t5_padding_mask(const at::Tensor& queries, const at::Tensor& keys);

/// Returns labels moved right by one; 0 comes before the first and replaces -100. Shapes: [rows, positions].
at::Tensor shifted_right(const at::Tensor& labels);

}  // namespace accrue::megatron
