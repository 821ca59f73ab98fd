// SPDX-License-Identifier: Apache-2.0
// Common part of the samplers of BERT and T5: the sentences of a row of the index, read and checked.
#pragma once

#include <string_view>
#include <vector>

#include "accrue/run/data/indexed_dataset.h"
#include "accrue/run/data/special_tokens.h"
#include "accrue/run/data/token_masking.h"

namespace accrue {

class IndexArray;

struct SentenceSample {
  std::vector<std::vector<std::int64_t>> sentences;
  std::int64_t target = 0;  ///< tokens
};

/// Errors: data for an item that does not exist and for a token outside the vocabulary; protocol if the row points
/// outside the dataset.
Result<SentenceSample> read_sentences(const IndexedDataset& dataset, const IndexArray& index, std::int64_t item,
                                      std::int64_t maximum, const SpecialTokens& special);
/// Errors: config.
Result<void> check_masking(const MaskingRule& rule);
/// Errors: config if `token` is not in the vocabulary.
Result<void> check_special(const SpecialTokens& special, std::int64_t token, std::string_view name);

}  // namespace accrue
