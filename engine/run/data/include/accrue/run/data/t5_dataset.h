// SPDX-License-Identifier: Apache-2.0
// Samples of a T5: sentences of a document with a sentinel for each masked span, and for the decoder the spans, each
// after its sentinel. They equal those of Megatron-LM's T5MaskedWordPieceDataset (megatron-core 0.12.0) item for item.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accrue/run/data/sentence_index.h"
#include "accrue/run/data/token_masking.h"

namespace accrue {

struct T5Request {
  std::int64_t sequence_length = 0;          ///< of the encoder
  std::int64_t decoder_sequence_length = 0;  ///< must hold the spans of every sample
  std::optional<std::int64_t> samples;       ///< minimum number; none: one epoch
  std::uint32_t seed = 0;
  double short_probability = 0.1;
  MaskingRule masking = t5_masking;
};

/// One sample. Rows of the encoder have sequence_length numbers, the others decoder_sequence_length.
struct T5Item {
  std::vector<std::int64_t> encoder_text;
  std::vector<std::int64_t> encoder_mask;  ///< 1 before the padding
  std::vector<std::int64_t> decoder_text;  ///< bos, then each sentinel with its span
  std::vector<std::int64_t> decoder_mask;  ///< 1 before the padding
  std::vector<std::int64_t> labels;        ///< decoder_text without bos, then eos, then -1
  std::vector<std::int64_t> loss_mask;     ///< 1 if there is a label
  bool truncated = false;
  bool operator==(const T5Item&) const = default;
};

class T5Dataset {
 public:
  /// Returns the request for build_sentence_index(): two tokens less than a sample.
  /// Errors: config if a sample has no room for tokens.
  static Result<SentenceIndexRequest> index_request(const T5Request& request);
  /// Errors: config if the tokenizer lacks mask, bos, eos or sentinels, or the request is out of range.
  static Result<T5Dataset> create(std::shared_ptr<const IndexedDataset> dataset, IndexArray index,
                                  const T5Request& request, SpecialTokens special);

  std::int64_t size() const { return index_.size(); }
  const IndexArray& index() const { return index_; }
  const IndexedDataset& dataset() const { return *dataset_; }
  /// Errors: data for an item that does not exist, for a token outside the vocabulary, and for a sample with more spans
  /// than sentinels or than the decoder can hold; protocol if the index belongs to another dataset.
  Result<T5Item> item(std::int64_t item) const;

 private:
  T5Dataset(std::shared_ptr<const IndexedDataset> dataset, IndexArray index, const T5Request& request,
            SpecialTokens special)
      : dataset_(std::move(dataset)), index_(std::move(index)), request_(request), special_(std::move(special)) {}

  std::shared_ptr<const IndexedDataset> dataset_;
  IndexArray index_;
  T5Request request_;
  SpecialTokens special_;
};

}  // namespace accrue
