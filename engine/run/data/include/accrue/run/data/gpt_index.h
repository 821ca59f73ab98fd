// SPDX-License-Identifier: Apache-2.0
// Tokens of each training sample of a GPT, by the three indices of Megatron-LM's GPTDataset:
// - the document index: the split's sequences, once for each epoch, shuffled. The name is historical; for a GPT each
//    sequence counts as a document.
// - the sample index: the start of each sample in the row of their tokens, as (entry of the document index, offset). A
//   sample has sequence_length tokens and an extra one, which is also the first of the next sample.
//  - the shuffle index: the order in which samples are trained on.
// If fewer than 80 % of the last epoch's samples are needed, that epoch is shuffled separately. So none of it comes
// before the others are done. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "accrue/run/data/index_array.h"
#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

struct GptIndexRequest {
  std::int64_t sequence_length = 0;
  std::optional<std::int64_t> samples;  ///< minimum number; none: one epoch
  std::uint32_t seed = 0;
  bool drop_last_partial_sequence = true;  ///< false: a shorter last sample is kept, and padded
  bool add_extra_token = true;             ///< false: samples do not overlap, and the last label is padding
  std::int64_t extra() const { return add_extra_token ? 1 : 0; }
};

/// Sizes that follow from the number of tokens alone.
struct GptIndexShape {
  std::int64_t tokens_per_epoch = 0;
  std::int64_t epochs = 1;
  std::int64_t samples = 0;
  bool separate_final_epoch = false;
  std::int64_t samples_before_final_epoch = 0;  ///< samples, unless the last epoch is shuffled separately
  bool operator==(const GptIndexShape&) const = default;
};
/// Errors: config for a length or a count below 1, and for a split without tokens.
Result<GptIndexShape> gpt_index_shape(std::int64_t tokens_per_epoch, const GptIndexRequest& request);

struct GptIndex {
  IndexArray document_index;  ///< int32
  IndexArray sample_index;    ///< [samples + 1, 2], int32, or int64 if that is too small
  IndexArray shuffle_index;   ///< uint32 or int64
};
/// Errors: as gpt_index_shape() and IndexedDataset::lengths(); out_of_memory if the index needs more than this machine
/// has.
Result<GptIndex> build_gpt_index(const IndexedDataset& dataset, const IndexRange& sequences,
                                 const GptIndexRequest& request);

/// Walks over the tokens and returns samples + 1 rows of (entry, offset). lengths[document_index[i] - first] is the
/// length of entry i.
IndexArray build_sample_index(std::span<const std::int32_t> lengths, std::span<const std::int32_t> document_index,
                              const GptIndexRequest& request, std::int64_t samples, std::int64_t first = 0);

}  // namespace accrue
