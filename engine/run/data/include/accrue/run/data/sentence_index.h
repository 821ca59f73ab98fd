// SPDX-License-Identifier: Apache-2.0
// Sentences of each sample of a BERT or a T5: rows of consecutive sequences of one document, as Megatron-LM's helpers
// map them (build_mapping). A sample ends at its target length or with its document.
#pragma once

#include <cstdint>
#include <optional>

#include "accrue/run/data/index_array.h"
#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

/// A document with a longer sentence gives no samples, unless it is its only one.
inline constexpr std::int64_t longest_sentence = 512;

struct SentenceIndexRequest {
  std::int64_t maximum = 0;             ///< tokens of a sample, without those that a model adds
  std::int64_t minimum_sentences = 1;   ///< minimum of a sample, and of a document that gives any
  std::optional<std::int64_t> samples;  ///< minimum number, in whole epochs; none: one epoch
  double short_probability = 0.1;       ///< share of samples that are cut at a random length below the maximum
  std::uint32_t seed = 0;
};

/// Returns uint32 [samples, 3]: first sequence, the one after the last, target length. Costs a pass over the documents
/// for each epoch. Errors: config for numbers out of range; data if the documents give no sample; out_of_memory;
/// protocol as in IndexedDataset.
Result<IndexArray> build_sentence_index(const IndexedDataset& dataset, const IndexRange& documents,
                                        const SentenceIndexRequest& request);

/// Checks that the documents give at least one sample. Stops reading at the first one that does. Errors: data if none
/// does; protocol as in IndexedDataset.
Result<void> check_gives_samples(const IndexedDataset& dataset, const IndexRange& documents,
                                 const SentenceIndexRequest& request);

}  // namespace accrue
