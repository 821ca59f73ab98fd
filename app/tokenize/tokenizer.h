// SPDX-License-Identifier: Apache-2.0
// A tokenizer as accrue-tokenize runs it: made from files, it converts one text after another to tokens, or tokens to
// text.
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

#include "accrue/run/base/result.h"
#include "accrue/run/data/dataset_sidecar.h"

namespace accrue::tokenize {

using Tokens = std::vector<std::int32_t>;

/// A vocabulary with more is refused as damaged.
inline constexpr std::size_t most_tokens = 4'000'000;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Encodes a text, which the caller has checked to be UTF-8. goes_on: it continues the text of the last call. Errors:
  /// data for a text that the tokenizer rejects.
  virtual Result<Tokens> encode(std::string_view text, bool goes_on = false) const = 0;
  /// Bytes so far that have neither a token nor an unknown token, and so are in no tokens.
  virtual std::int64_t left_out() const { return 0; }
  /// Decodes tokens; those outside the vocabulary have no text.
  virtual std::string decode(const Tokens& tokens) const = 0;
  /// Returns the vocabulary and its own special tokens; end_of_document if it has one.
  virtual DatasetSidecar facts() const = 0;
};

/// Contents of a file, with its name for errors.
struct NamedText {
  std::string_view text;
  std::string name = {};
};

/// Parts of a byte-level pair tokenizer, from any kind of file.
struct BytePairParts {
  struct Merge {
    std::string left, right;
    std::size_t place;  ///< its line or number, from 1
  };
  std::unordered_map<std::string, std::int32_t> tokens;
  std::vector<Merge> merges;  ///< in order of application
  std::string_view place_name = "line";
  std::optional<std::string> unknown;  ///< token for a byte without one; if empty, such a byte is dropped
  bool fuse_unknown = false;           ///< adjacent unknown bytes become one such token
  bool whole_words = false;            ///< a word that is a token is not built from pairs
  bool space_before = false;           ///< a space is added to a text that begins without one
};

/// Makes GPT-2's tokenizer: byte-level pairs, from its JSON vocabulary and its list of merges. Written here because
/// Debian 12 has no library for it. Errors: data for files that do not match or are damaged.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(const NamedText& vocabulary, const NamedText& merges);
/// merges: name of the file with the merges.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(BytePairParts parts, const std::string& merges);
/// Makes BERT's tokenizer: words in the longest pieces of a vocabulary with one token per line. keep_case: for cased
/// models. Written here for the same reason.
Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case);
/// tokens: by number. unknown: token of a word without pieces.
Result<std::unique_ptr<Tokenizer>> make_word_piece(const std::vector<std::string>& tokens, const std::string& unknown,
                                                   bool keep_case);
/// Returns the tokens of a JSON vocabulary. Errors: data if it is not an object of tokens and numbers.
Result<std::unordered_map<std::string, std::int32_t>> tokens_of(const nlohmann::json& vocabulary);
/// Returns the first token that is known to end a document.
std::optional<std::int32_t> end_of_document_of(const std::unordered_map<std::string, std::int32_t>& tokens);

/// A token that a text contains literally, such as <|endoftext|>.
struct AddedToken {
  std::string content;
  std::int32_t token = 0;
  bool takes_space_before = false;  ///< includes the preceding white space
  bool early = false;               ///< is searched before the others
};
/// Extracts these tokens from a text, and passes the rest to another tokenizer. Of two that begin at one place the
/// longer is used.
std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> inner, std::vector<AddedToken> added);

/// Returns the kind of a tokenizer in Hugging Face's tokenizer.json: "bpe" and "wordpiece" are supported. Empty: it is
/// not such a file.
std::string kind_of_tokenizer_json(std::string_view text);
/// Makes such a tokenizer. Errors: data for a damaged file, or one with unsupported features, which are named.
Result<std::unique_ptr<Tokenizer>> make_from_tokenizer_json(std::string_view text, bool keep_case);
/// Makes a tokenizer of a SentencePiece model, with libsentencepiece.
Result<std::unique_ptr<Tokenizer>> make_sentence_piece(std::string_view model);

/// Returns the merges file of a vocabulary file: merges.txt beside vocab.json, and NAME-merges.txt beside
/// NAME-vocab.json.
std::filesystem::path merges_of(const std::filesystem::path& vocabulary);

/// Opens bpe:FILE, wordpiece:FILE or sentencepiece:FILE; the first two also from tokenizer.json. Errors: config, data,
/// disk.
struct OpenedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  DatasetSidecar facts;  ///< with the names and the hashes of the files
};
Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case);

}  // namespace accrue::tokenize
