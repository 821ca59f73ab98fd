// SPDX-License-Identifier: Apache-2.0
// The last step of a tokenizer: a word becomes tokens of a vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "accrue/run/base/result.h"

namespace accrue::tokenize {

using Tokens = std::vector<std::int32_t>;
using Vocabulary = std::unordered_map<std::string, std::int32_t>;

/// A vocabulary with more is refused as damaged.
inline constexpr std::size_t most_tokens = 4'000'000;

class WordModel {
 public:
  explicit WordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~WordModel() = default;
  /// Adds a word's tokens. word: in UTF-8; not empty. Errors: data for a word that has none.
  virtual Result<void> append(std::string_view word, Tokens& tokens) const = 0;
  /// Bytes so far that have neither a token nor an unknown token, and so are in no tokens.
  virtual std::int64_t left_out() const { return 0; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// The number of a token, or -1.
  std::int32_t number_of(const std::string& name) const;

 protected:
  /// Adds the tokens <0x00> to <0xFF> of a text's bytes; false if one is missing.
  bool append_bytes(std::string_view text, Tokens& tokens) const;

 private:
  Vocabulary vocabulary_;
};

/// Returns the tokens of a JSON vocabulary. Errors: data if it is not an object of tokens and numbers.
Result<Vocabulary> vocabulary_of(const nlohmann::json& json);

/// Parts of a tokenizer of pairs, from any kind of file.
struct BytePairParts {
  struct Merge {
    std::string left, right;
    std::size_t place;  ///< its line or number, from 1
  };
  Vocabulary tokens;
  std::vector<Merge> merges;  ///< in order of application
  std::string_view place_name = "line";
  std::string file = {};               ///< that has the merges, for errors
  std::optional<std::string> unknown;  ///< token for what has none; if empty, that is dropped
  bool fuse_unknown = false;           ///< adjacent unknown units become one such token
  bool whole_words = false;            ///< a word that is a token is not built from pairs
  bool bytes = true;                   ///< words are read as bytes, and files name them by letters; else as characters
  bool byte_fallback = false;          ///< a character without a token becomes tokens of its bytes
  std::string prefix = {};             ///< of all units of a word but the first
  std::string suffix = {};             ///< of the last unit of a word
};
/// Makes the model of GPT-2, and of its kin that pair characters. Written here because Debian 12 has no library for it.
/// Errors: data for parts that do not fit each other.
Result<std::unique_ptr<WordModel>> make_byte_pair(BytePairParts parts);

/// The letters that stand for bytes in the files of byte pairs.
std::string bytes_of_letters(std::string_view letters);
std::string letters_of_bytes(std::string_view bytes);

struct WordPieceParts {
  Vocabulary tokens;
  std::string unknown = "[UNK]";   ///< token of a word without pieces
  std::string prefix = "##";       ///< of the pieces of a word but the first
  std::size_t longest_word = 100;  ///< in code points; a longer word is unknown as a whole
};
/// Makes BERT's model: a word is cut from its front into the longest pieces in the vocabulary. Errors: data.
Result<std::unique_ptr<WordModel>> make_word_piece(WordPieceParts parts);

struct UnigramParts {
  struct Piece {
    std::string text;
    double score;  ///< log-probability
  };
  std::vector<Piece> pieces;            ///< by number
  std::optional<std::int32_t> unknown;  ///< number of the piece for what has none
  bool byte_fallback = false;
};
/// Makes SentencePiece's unigram model: the most probable sequence of pieces. Errors: data.
Result<std::unique_ptr<WordModel>> make_unigram(UnigramParts parts);

/// Makes a model whose words are its tokens. Errors: data.
Result<std::unique_ptr<WordModel>> make_word_level(Vocabulary tokens, const std::string& unknown);

}  // namespace accrue::tokenize
