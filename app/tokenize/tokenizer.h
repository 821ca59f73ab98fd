// SPDX-License-Identifier: Apache-2.0
// A tokenizer as accrue-tokenize runs it: made from files, it converts one text after another to tokens, or tokens to
// text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/dataset_sidecar.h"
#include "word_model.h"

namespace accrue::tokenize {

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

/// Makes GPT-2's tokenizer: byte-level pairs, from its JSON vocabulary and its list of merges. Errors: data for files
/// that do not match or are damaged.
Result<std::unique_ptr<Tokenizer>> make_byte_pair(const NamedText& vocabulary, const NamedText& merges);
/// Makes BERT's tokenizer from a vocabulary with one token per line. keep_case: for cased models.
Result<std::unique_ptr<Tokenizer>> make_word_piece(std::string_view vocabulary, bool keep_case);
/// Makes a tokenizer of a SentencePiece model, with libsentencepiece.
Result<std::unique_ptr<Tokenizer>> make_sentence_piece(std::string_view model);

/// Returns the kind of a tokenizer in Hugging Face's tokenizer.json: bpe, wordpiece, unigram, wordlevel, or another,
/// which is not supported. Empty: it is not such a file.
std::string kind_of_tokenizer_json(std::string_view text);
/// Makes such a tokenizer. Errors: data for a damaged file, or one with unsupported features, which are named.
Result<std::unique_ptr<Tokenizer>> make_from_tokenizer_json(std::string_view text, bool keep_case);

/// Returns the merges file of a vocabulary file: merges.txt beside vocab.json, and NAME-merges.txt beside
/// NAME-vocab.json.
std::filesystem::path merges_of(const std::filesystem::path& vocabulary);

/// Opens KIND:FILE. A tokenizer.json may be given as its kind, or as json; the vocabularies of bpe and wordpiece, and
/// the models of sentencepiece, have files of their own. Errors: config, data, disk.
struct OpenedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  DatasetSidecar facts;  ///< with the names and the hashes of the files
};
Result<OpenedTokenizer> open_tokenizer(const std::string& kind, const std::filesystem::path& file, bool keep_case);

}  // namespace accrue::tokenize
