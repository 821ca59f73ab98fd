// SPDX-License-Identifier: Apache-2.0
// Indices on disk, under Megatron-LM's names and with its contents, so that either program takes what the other built:
//   HASH-GPTDataset-SPLIT-description.txt, -document_index.npy, -sample_index.npy, -shuffle_index.npy
//   HASH-BlendedDataset-SPLIT-description.txt, -dataset_index.npy, -dataset_sample_index.npy
// HASH is the MD5 of the description, a JSON text of everything that the indices follow from. Of a run's ranks one
// builds and saves; the others load after a barrier.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accrue/run/blend.h"
#include "accrue/run/dataset_splits.h"
#include "accrue/run/gpt_index.h"

namespace accrue {

/// A tokenizer as a description names it: its class, its files, its options in their order.
struct TokenizerIdentity {
  std::string class_name;
  std::vector<std::string> paths;
  std::vector<std::pair<std::string, std::string>> options;
};

struct GptDatasetIdentity {
  std::string dataset_path;  ///< the prefix, as it was given
  std::optional<std::int64_t> num_samples;
  DatasetSplit index_split = DatasetSplit::train;
  std::uint32_t random_seed = 0;
  std::int64_t sequence_length = 0;
  std::optional<std::string> split;  ///< the text; none where each split has data of its own
  TokenizerIdentity tokenizer;
};

struct BlendIdentity {
  std::vector<GptDatasetIdentity> datasets;
  DatasetSplit split = DatasetSplit::train;
  std::vector<double> weights;       ///< normalised; of an exhaustive blend the lengths
  std::optional<std::int64_t> size;  ///< none: exhaustive
};

/// The JSON texts. Errors: config for a split that parse_split() refuses.
Result<std::string> description_of(const GptDatasetIdentity& identity);
Result<std::string> description_of(const BlendIdentity& identity);

/// Where Megatron-LM keeps the indices of a dataset unless it is told: PREFIX/cache/GPTDataset_indices.
std::filesystem::path default_index_folder(const std::filesystem::path& prefix);

/// None where the folder lacks one of the files. Errors: protocol for files that are damaged or do not fit together.
Result<std::optional<GptIndex>> load_index(const std::filesystem::path& folder, const GptDatasetIdentity& identity);
Result<std::optional<BlendIndex>> load_index(const std::filesystem::path& folder, const BlendIdentity& identity);
/// Makes the folder where there is none. Errors: disk.
Result<void> save_index(const std::filesystem::path& folder, const GptDatasetIdentity& identity, const GptIndex& index);
Result<void> save_index(const std::filesystem::path& folder, const BlendIdentity& identity, const BlendIndex& index);

}  // namespace accrue
