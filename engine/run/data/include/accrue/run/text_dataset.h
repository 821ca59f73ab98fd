// SPDX-License-Identifier: Apache-2.0
// An indexed dataset from text files, plain or packed by gzip, and from JSON lines. Without a tokenizer token k is the
// byte k, and 256 ends a document where that is asked for. Memory stays small whatever the size of the texts: they are
// read a part at a time, and a tokenizer is given a document of more than 1 MiB in stretches, each of which ends before
// a line's end, or before other white space where no line ends. Byte pairs and word pieces are those of the whole even
// so; a SentencePiece model begins each stretch as it begins a text. A build that is stopped or killed goes on from its
// last checkpoint when the same build is asked for again, and ends in the same files. PREFIX.json says what the tokens
// mean.
//
// A byte-order mark is no part of a text. Where lines divide it, they end as on any system, and one of white space
// alone is blank. A file that is no text at all is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/dataset_sidecar.h"
#include "accrue/run/result.h"

namespace accrue {

/// Of what the document of a text is made; each is one sequence.
enum class DocumentKind {
  file,       ///< the whole file, with the ends of its lines as they are
  paragraph,  ///< the text between blank lines, which are dropped
  line,       ///< a line that is not blank, without its end
};

inline constexpr std::int64_t end_of_document_token = 256;
inline constexpr std::int64_t byte_vocabulary = 257;

/// After so many bytes a document is given to a tokenizer. Where they have no white space more follow, up to the
/// longest.
inline constexpr std::size_t stretch_bytes = std::size_t{1} << 20;
inline constexpr std::size_t longest_stretch_bytes = std::size_t{16} << 20;

/// Makes tokens of texts. Thread: that of the build.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// The vocabulary, the special tokens and the files; largest_token and sentences are the build's to fill in.
  virtual const DatasetSidecar& facts() const = 0;
  /// The tokens of a text in UTF-8. goes_on: of the text that the last call began, not of a new one.
  /// Errors: data for a text that is not.
  virtual Result<std::vector<std::int64_t>> encode(std::string_view text, bool goes_on) = 0;
};

struct TextDatasetRequest {
  std::vector<std::filesystem::path> texts;
  std::filesystem::path prefix;
  DocumentKind documents = DocumentKind::file;
  bool append_eod = false;  ///< end each document with end_of_document_token, or that of the tokenizer
  bool sentences = false;   ///< each line is a sequence, and a blank line ends a document; for BERT and T5
  /// The texts are JSON lines, and this key of each has the text of a document; a list under it is a sequence for each
  /// of its texts. Empty: those that holds_json_lines() are, under the key "text". A document without tokens is left
  /// out.
  std::string json_key = {};
  TextTokenizer* tokenizer = nullptr;  ///< none: bytes
  /// Tokens; a document that has more is several sequences. An index cannot hold longer ones.
  std::int64_t longest_sequence = std::numeric_limits<std::int32_t>::max();
};

/// What bytes mean: 256 ends a document; with `sentences` the special tokens follow it.
DatasetSidecar byte_tokenizer_facts(bool sentences);

struct TextProgress {
  std::int64_t bytes = 0;       ///< read, with those of an interrupted build
  std::int64_t total = 0;       ///< of all texts
  std::int64_t resumed_at = 0;  ///< bytes that an interrupted build had read
};
/// False stops the build after a checkpoint; an empty one never does.
using TextWatch = std::function<bool(const TextProgress&)>;

struct TextDatasetFacts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t resumed_at = 0;  ///< as in TextProgress
};

/// Whether a file is JSON lines by its name: .jsonl, .ndjson or .json, and .gz behind it.
bool holds_json_lines(const std::filesystem::path& path);

/// After an error nothing is left of the dataset but what the same build can go on from.
/// Errors: config where the dataset exists, an interrupted build was of other texts, or the end of documents is asked
/// of a tokenizer that has no token for it; data for a text that cannot be read or is none; cancelled where watch
/// stopped it; disk.
Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch);

}  // namespace accrue
