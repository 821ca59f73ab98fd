// SPDX-License-Identifier: Apache-2.0
// A tokenizer as accrue-tokenize runs it: made of files, asked for the tokens of one text after the other, or for the
// text of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/dataset_sidecar.h"
#include "accrue/run/result.h"

namespace accrue::tokenize {

using Tokens = std::vector<std::int32_t>;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Of a text in UTF-8, which the caller has checked.
  virtual Tokens encode(std::string_view text) const = 0;
  /// Of tokens that may stand outside the vocabulary, which have no text.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// The vocabulary and the special tokens that it has of its own; end_of_document where it has one.
  virtual DatasetSidecar facts() const = 0;
};

/// GPT-2's: byte-level pairs, from its vocabulary in JSON and the list of its merges. Written here because Debian 12
/// has no library for it. Errors: data for files that do not belong together or are damaged.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(std::string_view vocabulary, std::string_view merges);
/// BERT's: words in the longest pieces of a vocabulary with a token a line. keep_case: as cased models are trained.
/// Written here for the same reason.
Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case);
/// A SentencePiece model, by libsentencepiece.
Result<std::unique_ptr<Tokenizer>> make_sentence_piece(std::string_view model);

/// Where the merges of a vocabulary file lie: vocab.json has merges.txt beside it, and NAME-vocab.json NAME-merges.txt.
std::filesystem::path merges_of(const std::filesystem::path& vocabulary);

/// Opens bpe:FILE, wordpiece:FILE or sentencepiece:FILE. Errors: config, data, disk.
struct OpenedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  DatasetSidecar facts;  ///< with the names and the hashes of the files
};
Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case);

}  // namespace accrue::tokenize
