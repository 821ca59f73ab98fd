// SPDX-License-Identifier: Apache-2.0
// Indices on disk, with Megatron-LM's names and contents, so that each program can use the indices of the other:
//   HASH-GPTDataset-SPLIT-description.txt, -document_index.npy, -sample_index.npy, -shuffle_index.npy
//   HASH-BERTMaskedWordPieceDataset-description.txt, -sample_index.npy, and the same for T5
//   HASH-BlendedDataset-SPLIT-description.txt, -dataset_index.npy, -dataset_sample_index.npy
// HASH is the MD5 of the description, a JSON text of all inputs of the indices. It names the corpus, but a file's
// contents may change under the same name. So Accrue writes a -corpus.txt beside the files, with a hash of the corpus.
// Files of Megatron-LM have none; they must not be older than the corpus.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/data/blend.h"
#include "accrue/run/data/dataset_splits.h"
#include "accrue/run/data/gpt_index.h"
#include "accrue/run/data/token_masking.h"

namespace accrue {

/// A tokenizer as a description names it: its class, its files (none if it has no file) and its options in order.
struct TokenizerIdentity {
  std::string class_name;
  std::vector<std::optional<std::string>> paths;
  std::vector<std::pair<std::string, std::string>> options;
};

/// Further inputs of the samples of a BERT or a T5.
struct MaskingIdentity {
  MaskingRule rule;
  double short_probability = 0.1;
  std::optional<std::int64_t> decoder_sequence_length;  ///< of a T5; none: a BERT
  bool binary_head = true;                              ///< of a BERT
};

/// State of the corpus now; not part of a description.
struct CorpusMark {
  std::string hash;
  std::filesystem::file_time_type changed;  ///< or time of its replacement, which a copy can hide from the first
};

/// Samples of one dataset: of a GPT, or with `masking` of a BERT or a T5.
struct DatasetIdentity {
  std::string dataset_path;  ///< the prefix as given by the user
  std::optional<std::int64_t> num_samples;
  DatasetSplit index_split = DatasetSplit::train;
  std::uint32_t random_seed = 0;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split;  ///< the text; none if each split has its own data
  TokenizerIdentity tokenizer;
  std::optional<MaskingIdentity> masking;
  std::optional<CorpusMark> corpus;  ///< none: indices of any corpus are accepted
};

struct BlendIdentity {
  std::vector<DatasetIdentity> datasets;
  DatasetSplit split = DatasetSplit::train;
  std::vector<double> weights;       ///< normalised; for an exhaustive blend the lengths
  std::optional<std::int64_t> size;  ///< none: exhaustive
};

/// JSON text of the description. Errors: config for a split that parse_split() refuses.
Result<std::string> description_of(const DatasetIdentity& identity);
Result<std::string> description_of(const BlendIdentity& identity);

/// Megatron-LM's default folder for the indices of a dataset: PREFIX/cache/GPTDataset_indices, or with the class name
/// of a BERT or a T5.
std::filesystem::path default_index_folder(const std::filesystem::path& prefix,
                                           std::string_view class_name = "GPTDataset");
/// "GPTDataset", "BERTMaskedWordPieceDataset" or "T5MaskedWordPieceDataset".
std::string_view class_name(const DatasetIdentity& identity);

/// Returns none if the folder lacks one of the files, or if they belong to another corpus. Errors: protocol for files
/// that are damaged or do not match each other.
Result<std::optional<GptIndex>> load_index(const std::filesystem::path& folder, const DatasetIdentity& identity);
Result<std::optional<BlendIndex>> load_index(const std::filesystem::path& folder, const BlendIdentity& identity);
/// Creates the folder if necessary. Errors: disk.
Result<void> save_index(const std::filesystem::path& folder, const DatasetIdentity& identity, const GptIndex& index);
/// Load and save the index of a BERT or a T5; `identity` has a masking. Errors: as above.
Result<std::optional<IndexArray>> load_sentence_index(const std::filesystem::path& folder,
                                                      const DatasetIdentity& identity);
Result<void> save_sentence_index(const std::filesystem::path& folder, const DatasetIdentity& identity,
                                 const IndexArray& index);
Result<void> save_index(const std::filesystem::path& folder, const BlendIdentity& identity, const BlendIndex& index);

}  // namespace accrue
