// SPDX-License-Identifier: Apache-2.0
// Builds an indexed dataset from text files, plain or gzipped, and from JSON lines. Without a tokenizer, token k is the
// byte k, and 256 optionally ends a document. Memory use is small for any size of texts, because they are read in
// parts. A document of more than 1 MiB goes to the tokenizer in stretches. They end before a line end, or before other
// white space if there is no line end. Byte pairs and word pieces are the same as for the whole text; a SentencePiece
// model begins each stretch like a text. A build that was stopped or killed continues from its last checkpoint if it is
// started again with the same request. It gives the same files. PREFIX.json describes the tokens.
//
// A byte-order mark is not part of a text. Where lines divide it, any system's line ends count, and a line of white
// space alone is blank. A file that is not a text is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/dataset_sidecar.h"

namespace accrue {

/// Unit of a text that becomes a document; each document is one sequence.
enum class DocumentKind {
  file,       ///< the whole file, including line ends
  paragraph,  ///< the text between blank lines, which are dropped
  line,       ///< a non-blank line, without its end
};

inline constexpr std::int64_t end_of_document_token = 256;
inline constexpr std::int64_t byte_vocabulary = 257;

/// Number of bytes after which a document goes to a tokenizer. If they contain no white space, more bytes follow, up to
/// the longest stretch.
inline constexpr std::size_t stretch_bytes = std::size_t{1} << 20;
inline constexpr std::size_t longest_stretch_bytes = std::size_t{16} << 20;

/// Interface that makes tokens of texts. Thread: that of the build.
class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;
  /// Vocabulary, special tokens and files. The build itself fills in largest_token and sentences.
  virtual const DatasetSidecar& facts() const = 0;
  /// Returns the tokens of a text. goes_on: it continues the text of the last call.
  /// Errors: data for a text that is not UTF-8.
  virtual Result<std::vector<std::int64_t>> encode(std::string_view text, bool goes_on) = 0;
};

struct TextDatasetRequest {
  std::vector<std::filesystem::path> texts;
  std::filesystem::path prefix;
  DocumentKind documents = DocumentKind::file;
  bool append_eod = false;  ///< end each document with end_of_document_token, or with that of the tokenizer
  bool sentences = false;   ///< each line is a sequence, and a blank line ends a document; for BERT and T5
  /// Key of the JSON lines that holds a document's text; a list under it gives one sequence per text. Empty: files for
  /// which holds_json_lines() is true are JSON lines, with the key "text". A document without tokens is left out.
  std::string json_key = {};
  /// Key of a text that comes before it, and that a model reads without learning to write it. Empty: none.
  std::string prompt_key = {};
  TextTokenizer* tokenizer = nullptr;  ///< none: bytes
  /// Tokens; a longer document becomes several sequences. An index cannot hold longer ones.
  std::int64_t longest_sequence = std::numeric_limits<std::int32_t>::max();
};

/// Facts of the byte tokenizer: 256 ends a document; with `sentences` the special tokens follow it.
DatasetSidecar byte_tokenizer_facts(bool sentences);

struct TextProgress {
  std::int64_t bytes = 0;       ///< bytes read, including those of an interrupted build
  std::int64_t total = 0;       ///< of all texts
  std::int64_t resumed_at = 0;  ///< bytes that an interrupted build had read
};
/// Progress callback; false stops the build after a checkpoint. An empty function never stops it.
using TextWatch = std::function<bool(const TextProgress&)>;

struct TextDatasetFacts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t resumed_at = 0;  ///< as in TextProgress
};

/// Whether a file name means JSON lines: .jsonl, .ndjson or .json, optionally followed by .gz.
bool holds_json_lines(const std::filesystem::path& path);

/// After an error only the files from which the same build can continue remain.
/// Errors: config if the dataset exists, if an interrupted build was of other texts, or if the tokenizer has no token
/// for the end of a document that is to be appended; data for an unreadable file or one that is not a text; cancelled
/// if `watch` stopped it; disk.
Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch);

}  // namespace accrue
