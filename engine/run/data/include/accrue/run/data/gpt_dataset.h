// SPDX-License-Identifier: Apache-2.0
// Samples of a GPT, cut out of the mapped files by a split of an indexed dataset and its three indices.
#pragma once

#include <memory>
#include <vector>

#include "accrue/run/data/gpt_index.h"
#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

/// Consecutive tokens of a sequence.
struct TextPiece {
  std::int64_t sequence = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool operator==(const TextPiece&) const = default;
};

struct GptItem {
  std::vector<std::int64_t> tokens;  ///< [sequence_length]
  std::vector<std::int64_t> labels;  ///< the token after each
  std::vector<float> loss_mask;      ///< 0 if the label is padding or belongs to a prompt, else 1
};

class GptDataset {
 public:
  /// `pad`: the token that fills a partial sample; -1 for a tokenizer without one. Padding becomes token 0, masked.
  GptDataset(std::shared_ptr<const IndexedDataset> dataset, GptIndex index, const GptIndexRequest& request,
             std::int64_t pad = -1)
      : dataset_(std::move(dataset)), index_(std::move(index)), request_(request), pad_(pad) {}

  std::int64_t size() const { return index_.shuffle_index.size(); }
  const GptIndex& index() const { return index_; }
  const IndexedDataset& dataset() const { return *dataset_; }
  /// Errors: data for an item that does not exist; protocol if an index points outside its dataset.
  Result<GptItem> item(std::int64_t item) const;
  /// Returns an item that fills up a batch: the tokens of item 0, with a loss mask of zeros.
  Result<GptItem> padding_item() const;
  /// Returns the pieces of text of an item, without padding. Errors: as item().
  Result<std::vector<TextPiece>> pieces(std::int64_t item) const;
  /// Returns sequence_length + 1 tokens before they are divided into tokens and labels; padded.
  Result<std::vector<std::int64_t>> text(std::int64_t item) const;

 private:
  Result<void> leave_out_prompts(std::int64_t item, std::vector<float>& loss_mask) const;

  std::shared_ptr<const IndexedDataset> dataset_;
  GptIndex index_;
  GptIndexRequest request_;
  std::int64_t pad_;
};

}  // namespace accrue
