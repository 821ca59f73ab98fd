// SPDX-License-Identifier: Apache-2.0
// An indexed dataset from text files, byte by byte: token k is the byte k, and 256 ends a document where that is asked
// for. The texts are read a part at a time, so memory stays small whatever their size. A build that is stopped or
// killed goes on from its last checkpoint when the same build is asked for again, and ends in the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "accrue/run/result.h"

namespace accrue {

/// Of what the document of a text is made; each is one sequence.
enum class DocumentKind {
  file,       ///< the whole file
  paragraph,  ///< the text between blank lines, which are dropped
  line,       ///< a line that is not empty, without its end
};

inline constexpr std::int64_t end_of_document_token = 256;
inline constexpr std::int64_t byte_vocabulary = 257;

struct TextDatasetRequest {
  std::vector<std::filesystem::path> texts;
  std::filesystem::path prefix;
  DocumentKind documents = DocumentKind::file;
  bool append_eod = false;  ///< end each document with end_of_document_token
};

struct TextProgress {
  std::int64_t bytes = 0;       ///< read, with those of an interrupted build
  std::int64_t total = 0;       ///< of all texts
  std::int64_t resumed_at = 0;  ///< bytes that an interrupted build had read
};
/// False stops the build after a checkpoint.
using TextWatch = std::function<bool(const TextProgress&)>;

struct TextDatasetFacts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t resumed_at = 0;  ///< as in TextProgress
};

/// Errors: config where the dataset exists, or an interrupted build was of other texts; data for a text that cannot be
/// read; cancelled where watch stopped it; disk.
Result<TextDatasetFacts> build_text_dataset(const TextDatasetRequest& request, const TextWatch& watch);

}  // namespace accrue
