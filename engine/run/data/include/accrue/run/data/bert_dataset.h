// SPDX-License-Identifier: Apache-2.0
// Samples of a BERT: two segments of a document, in order or swapped, with words to predict. They equal those of
// Megatron-LM's BERTMaskedWordPieceDataset (megatron-core 0.12.0) item for item and draw for draw, with two
// differences. `types` and `padding_mask` are padded with zeros instead of the pad token, and a tokenizer without a
// required token is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/data/sentence_index.h"
#include "accrue/run/data/token_masking.h"

namespace accrue {

struct BertRequest {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> samples;  ///< minimum number, in whole epochs; none: one epoch
  std::uint32_t seed = 0;
  bool binary_head = true;  ///< samples have two segments, and is_random is predicted
  double short_probability = 0.1;
  MaskingRule masking = bert_masking;
};

/// One sample; each row has sequence_length numbers.
struct BertItem {
  std::vector<std::int64_t> text;
  std::vector<std::int64_t> types;         ///< 1 in the second segment, else 0
  std::vector<std::int64_t> labels;        ///< token to predict, or -1
  std::vector<std::int64_t> loss_mask;     ///< 1 if there is a label
  std::vector<std::int64_t> padding_mask;  ///< 1 before the padding
  bool is_random = false;                  ///< the segments are swapped
  bool truncated = false;
  bool operator==(const BertItem&) const = default;
};

class BertDataset {
 public:
  /// Returns the request for build_sentence_index(): at least two sentences with a binary head, and three tokens less
  /// than a sample. Errors: config if a sample has no room for tokens.
  static Result<SentenceIndexRequest> index_request(const BertRequest& request);
  /// Errors: config if the tokenizer lacks cls, sep or mask, or the request is out of range.
  static Result<BertDataset> create(std::shared_ptr<const IndexedDataset> dataset, IndexArray index,
                                    const BertRequest& request, SpecialTokens special);

  std::int64_t size() const { return index_.size(); }
  const IndexArray& index() const { return index_; }
  const IndexedDataset& dataset() const { return *dataset_; }
  /// Errors: data for an item that does not exist and for a token outside the vocabulary; protocol if the index belongs
  /// to another dataset.
  Result<BertItem> item(std::int64_t item) const;

 private:
  BertDataset(std::shared_ptr<const IndexedDataset> dataset, IndexArray index, const BertRequest& request,
              SpecialTokens special)
      : dataset_(std::move(dataset)), index_(std::move(index)), request_(request), special_(std::move(special)) {}

  std::shared_ptr<const IndexedDataset> dataset_;
  IndexArray index_;
  BertRequest request_;
  SpecialTokens special_;
};

}  // namespace accrue
