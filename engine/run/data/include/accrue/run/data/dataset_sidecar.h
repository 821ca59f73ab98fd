// SPDX-License-Identifier: Apache-2.0
// PREFIX.json, which `accrue-run data build` writes beside an indexed dataset: the meaning of its tokens. A dataset
// without it is readable, but the user must then give what depends on the tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/special_tokens.h"

namespace accrue {

struct TokenizerFile {
  std::string path;  ///< as given by the user
  std::string sha256;
  bool operator==(const TokenizerFile&) const = default;
};

struct DatasetSidecar {
  std::string tokenizer;             ///< bytes, bpe, sentencepiece, unigram, wordlevel or wordpiece
  std::vector<TokenizerFile> files;  ///< that it reads
  SpecialTokens special;             ///< with the size of the vocabulary
  std::optional<std::int64_t> end_of_document;
  bool keep_case = false;           ///< of a wordpiece: keeps upper case
  std::int64_t largest_token = -1;  ///< that occurs in the dataset; -1: unknown
  bool sentences = false;           ///< each sequence is a line of the text
  bool prompts = false;             ///< PREFIX.prompts belongs to the dataset
  bool operator==(const DatasetSidecar&) const = default;
};

/// PREFIX.json
std::filesystem::path sidecar_path(const std::filesystem::path& prefix);
/// Returns none if the file does not exist. Errors: protocol for a damaged one, with the member; disk.
Result<std::optional<DatasetSidecar>> read_sidecar(const std::filesystem::path& prefix);
Result<DatasetSidecar> parse_sidecar(const std::string& json, const std::string& where);
std::string to_json(const DatasetSidecar& sidecar);
Result<void> write_sidecar(const std::filesystem::path& prefix, const DatasetSidecar& sidecar);

/// Adds the special tokens that a vocabulary lacks for BERT and T5, after its last token, in this order: cls, sep,
/// mask, pad, bos, eos, 100 sentinels.
void add_special_tokens(DatasetSidecar& sidecar);

}  // namespace accrue
