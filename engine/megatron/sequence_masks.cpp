// SPDX-License-Identifier: Apache-2.0
// Masks in Megatron-LM's convention: true where a query must not see a key. Shapes: B rows, T positions.
#include "accrue/megatron/sequence_masks.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

namespace accrue::megatron {
namespace {

/// [T, T]: true above the diagonal.
at::Tensor causal(std::int64_t positions, const at::Tensor& like) {
  return at::ones({positions, positions}, like.options().dtype(at::kBool)).triu(1);
}

/// The document of each position. An end belongs to the document that it ends: the tokens 5 E 7 8 E 9, with E the end,
/// have the numbers 0 0 1 1 1 2, and their documents begin at 0 0 2 2 2 5.
struct Documents {
  at::Tensor number;  ///< [B, T]: number of documents that end before it
  at::Tensor first;   ///< [B, T]: position of its document's first token
};

Documents documents_of(const at::Tensor& tokens, std::int64_t eod) {
  const at::Tensor ends = (tokens == eod).to(at::kLong);
  const std::int64_t positions = tokens.size(1);
  at::Tensor begins = at::zeros_like(ends);  // 1 where a document begins after another
  if (positions > 1) begins.narrow(1, 1, positions - 1).copy_(ends.narrow(1, 0, positions - 1));
  const at::Tensor places = at::arange(positions, ends.options()).expand_as(ends);
  // The largest beginning so far is the current document's, as places ascend.
  return {at::cumsum(begins, 1), std::get<0>((begins * places).cummax(1))};
}

}  // namespace

LeftToRight get_ltor_masks_and_position_ids(const at::Tensor& tokens, const LeftToRightOptions& options) {
  const std::int64_t rows = tokens.size(0), positions = tokens.size(1);
  LeftToRight made;
  made.attention_mask = causal(positions, tokens).view({1, 1, positions, positions});
  made.loss_mask = at::ones({rows, positions}, tokens.options().dtype(at::kFloat));
  if (options.eod_mask_loss) made.loss_mask.masked_fill_(tokens == options.eod_token, 0.0);
  made.position_ids = at::arange(positions, tokens.options().dtype(at::kLong)).expand({rows, positions}).contiguous();
  if (!options.reset_position_ids && !options.reset_attention_mask) return made;
  const Documents documents = documents_of(tokens, options.eod_token);
  if (options.reset_attention_mask) {
    // [B, T, 1] != [B, 1, T]: tokens of other documents.
    const at::Tensor elsewhere = documents.number.unsqueeze(2) != documents.number.unsqueeze(1);
    made.attention_mask = made.attention_mask.logical_or(elsewhere.unsqueeze(1));
    made.document_starts = documents.first;
  }
  // Position in the document: t - first(t).
  if (options.reset_position_ids) made.position_ids = made.position_ids - documents.first;
  return made;
}

at::Tensor bert_extended_attention_mask(const at::Tensor& padding) {
  const at::Tensor real = padding.to(at::kFloat);
  // [B, 1, T] * [B, T, 1] -> [B, 1, T, T]: 1 if both are tokens.
  return (real.unsqueeze(1) * real.unsqueeze(2) < 0.5).unsqueeze(1);
}

at::Tensor t5_decoder_mask(std::int64_t positions) {
  return at::ones({positions, positions}, at::kBool).triu(1).unsqueeze(0);
}

at::Tensor t5_padding_mask(const at::Tensor& queries, const at::Tensor& keys) {
  // [B, T, 1] * [B, 1, S] -> [B, T, S].
  return queries.to(at::kFloat).unsqueeze(2) * keys.to(at::kFloat).unsqueeze(1) < 0.5;
}

at::Tensor shifted_right(const at::Tensor& labels) {
  at::Tensor shifted = at::zeros_like(labels);
  const std::int64_t positions = labels.size(1);
  if (positions > 1) shifted.narrow(1, 1, positions - 1).copy_(labels.narrow(1, 0, positions - 1));
  return shifted.masked_fill_(shifted == -100, 0);
}

}  // namespace accrue::megatron
