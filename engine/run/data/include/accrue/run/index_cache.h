// SPDX-License-Identifier: Apache-2.0
// Indices on disk, under Megatron-LM's names and with its contents, so that either program takes what the other built:
//   HASH-GPTDataset-SPLIT-description.txt, -document_index.npy, -sample_index.npy, -shuffle_index.npy
//   HASH-BERTMaskedWordPieceDataset-description.txt, -sample_index.npy, and with T5 in place of BERT
//   HASH-BlendedDataset-SPLIT-description.txt, -dataset_index.npy, -dataset_sample_index.npy
// HASH is the MD5 of the description, a JSON text of everything that the indices follow from. Of the corpus it has
// only the name, under which the contents may change. So Accrue keeps a -corpus.txt beside the files, with a hash of
// the corpus that they were built from. Megatron-LM's files have none; they must not be older than the corpus.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/blend.h"
#include "accrue/run/dataset_splits.h"
#include "accrue/run/gpt_index.h"
#include "accrue/run/token_masking.h"

namespace accrue {

/// A tokenizer as a description names it: its class, its files (none where it has no file), its options in their order.
struct TokenizerIdentity {
  std::string class_name;
  std::vector<std::optional<std::string>> paths;
  std::vector<std::pair<std::string, std::string>> options;
};

/// What the samples of a BERT or a T5 depend on besides.
struct MaskingIdentity {
  MaskingRule rule;
  double short_probability = 0.1;
  std::optional<std::int64_t> decoder_sequence_length;  ///< of a T5; none: a BERT
  bool binary_head = true;                              ///< of a BERT
};

/// The corpus as it is now; no part of a description.
struct CorpusMark {
  std::string hash;
  std::filesystem::file_time_type changed;  ///< or was put in its place, which a copy can hide from the first
};

/// The samples of one dataset: of a GPT, or with `masking` of a BERT or a T5.
struct DatasetIdentity {
  std::string dataset_path;  ///< the prefix, as it was given
  std::optional<std::int64_t> num_samples;
  DatasetSplit index_split = DatasetSplit::train;
  std::uint32_t random_seed = 0;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split;  ///< the text; none where each split has data of its own
  TokenizerIdentity tokenizer;
  std::optional<MaskingIdentity> masking;
  std::optional<CorpusMark> corpus;  ///< none: indices of whatever corpus are taken
};

struct BlendIdentity {
  std::vector<DatasetIdentity> datasets;
  DatasetSplit split = DatasetSplit::train;
  std::vector<double> weights;       ///< normalised; of an exhaustive blend the lengths
  std::optional<std::int64_t> size;  ///< none: exhaustive
};

/// The JSON texts. Errors: config for a split that parse_split() refuses.
Result<std::string> description_of(const DatasetIdentity& identity);
Result<std::string> description_of(const BlendIdentity& identity);

/// Where Megatron-LM keeps the indices of a dataset unless it is told: PREFIX/cache/GPTDataset_indices, or the class of
/// a BERT or a T5 in the place of GPTDataset.
std::filesystem::path default_index_folder(const std::filesystem::path& prefix,
                                           std::string_view class_name = "GPTDataset");
/// "GPTDataset", "BERTMaskedWordPieceDataset" or "T5MaskedWordPieceDataset".
std::string_view class_name(const DatasetIdentity& identity);

/// None where the folder lacks one of the files, or they were built of another corpus. Errors: protocol for files that
/// are damaged or do not fit together.
Result<std::optional<GptIndex>> load_index(const std::filesystem::path& folder, const DatasetIdentity& identity);
Result<std::optional<BlendIndex>> load_index(const std::filesystem::path& folder, const BlendIdentity& identity);
/// Makes the folder where there is none. Errors: disk.
Result<void> save_index(const std::filesystem::path& folder, const DatasetIdentity& identity, const GptIndex& index);
/// The same for the index of a BERT or a T5; `identity` has a masking.
Result<std::optional<IndexArray>> load_sentence_index(const std::filesystem::path& folder,
                                                      const DatasetIdentity& identity);
Result<void> save_sentence_index(const std::filesystem::path& folder, const DatasetIdentity& identity,
                                 const IndexArray& index);
Result<void> save_index(const std::filesystem::path& folder, const BlendIdentity& identity, const BlendIndex& index);

}  // namespace accrue
