// SPDX-License-Identifier: Apache-2.0
// A tokenizer as accrue-tokenize runs it: made of files, asked for the tokens of one text after the other, or for the
// text of tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "accrue/run/dataset_sidecar.h"
#include "accrue/run/result.h"

namespace accrue::tokenize {

using Tokens = std::vector<std::int32_t>;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Of a text in UTF-8, which the caller has checked. goes_on: of the text that the last call began, not of a new one.
  /// Errors: data for a text that the tokenizer cannot bear.
  virtual Result<Tokens> encode(std::string_view text, bool goes_on = false) const = 0;
  /// Bytes of all texts so far that have no token, nor one for what is unknown: they are in no tokens.
  virtual std::int64_t left_out() const { return 0; }
  /// Of tokens that may stand outside the vocabulary, which have no text.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// The vocabulary and the special tokens that it has of its own; end_of_document where it has one.
  virtual DatasetSidecar facts() const = 0;
};

/// What a file holds; errors name it by its name.
struct NamedText {
  std::string_view text;
  std::string name = {};
};

/// What makes a tokenizer of byte-level pairs, whatever file it comes from.
struct BytePairParts {
  struct Merge {
    std::string left, right;
    std::size_t place;  ///< its line or its number, from 1
  };
  std::unordered_map<std::string, std::int32_t> tokens;
  std::vector<Merge> merges;  ///< the first one to be done stands first
  std::string_view place_name = "line";
  std::optional<std::string> unknown;  ///< the token of a byte that has none; without it such a byte is left out
  bool fuse_unknown = false;           ///< bytes in a row that have none are one such token
  bool whole_words = false;            ///< a word that is a token is not built from its pairs
  bool space_before = false;           ///< a text that begins without a space gets one
};

/// GPT-2's: byte-level pairs, from its vocabulary in JSON and the list of its merges. Written here because Debian 12
/// has no library for it. Errors: data for files that do not belong together or are damaged.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(const NamedText& vocabulary, const NamedText& merges);
/// merges: the name of the file that has them.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(BytePairParts parts, const std::string& merges);
/// BERT's: words in the longest pieces of a vocabulary with a token a line. keep_case: as cased models are trained.
/// Written here for the same reason.
Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case);
/// tokens: by their numbers. unknown: the one of a word that has no pieces.
Result<std::unique_ptr<Tokenizer>> make_word_piece(const std::vector<std::string>& tokens, const std::string& unknown,
                                                   bool keep_case);
/// The tokens of a vocabulary in JSON. Errors: data where it is no object of tokens and their numbers.
Result<std::unordered_map<std::string, std::int32_t>> tokens_of(const nlohmann::json& vocabulary);
/// The first of the tokens that are known to end a document.
std::optional<std::int32_t> end_of_document_of(const std::unordered_map<std::string, std::int32_t>& tokens);

/// A token that a text holds as it stands, such as <|endoftext|>.
struct AddedToken {
  std::string content;
  std::int32_t token = 0;
  bool takes_space_before = false;  ///< the white space before it belongs to it
  bool early = false;               ///< is looked for before those that are not
};
/// Takes these tokens out of a text, and leaves what is between them to another tokenizer. Of two that begin at one
/// place the longer is found.
std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> inner, std::vector<AddedToken> added);

/// The kind of a tokenizer in the one file tokenizer.json of Hugging Face's library: "bpe" and "wordpiece" can be read.
/// Empty: it is no such file.
std::string kind_of_tokenizer_json(std::string_view text);
/// Such a tokenizer. Errors: data for one that is damaged, or that asks for what is not supported, which they name.
Result<std::unique_ptr<Tokenizer>> make_from_tokenizer_json(std::string_view text, bool keep_case);
/// A SentencePiece model, by libsentencepiece.
Result<std::unique_ptr<Tokenizer>> make_sentence_piece(std::string_view model);

/// Where the merges of a vocabulary file lie: vocab.json has merges.txt beside it, and NAME-vocab.json NAME-merges.txt.
std::filesystem::path merges_of(const std::filesystem::path& vocabulary);

/// Opens bpe:FILE, wordpiece:FILE or sentencepiece:FILE; the first two by tokenizer.json, too. Errors: config, data,
/// disk.
struct OpenedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  DatasetSidecar facts;  ///< with the names and the hashes of the files
};
Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case);

}  // namespace accrue::tokenize
