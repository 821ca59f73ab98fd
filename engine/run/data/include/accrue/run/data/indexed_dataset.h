// SPDX-License-Identifier: Apache-2.0
// Indexed datasets in Megatron-LM's format: token sequences in PREFIX.bin, and their places in PREFIX.idx. A document
// is one or more consecutive sequences. Both files are mapped, so opening costs the same for any size, and ranks of one
// host share the page cache.
//
// Opening checks the header, both sizes and the last sequence. Every other number of the index is checked against the
// files before use, so a damaged pair is refused or read within its bounds. Multimodal indexes, which end with a mode
// for each sequence, are refused.
//
// A third file of Accrue's own, PREFIX.prompts, is there if sequences begin with a prompt, which a model reads and does
// not learn to write: an int32 for each sequence, the tokens of its prompt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "accrue/run/base/result.h"
#include "accrue/run/data/mapped_file.h"

namespace accrue {

/// Type codes of the format.
enum class DType : std::uint8_t { uint8 = 1, int8, int16, int32, int64, float64, float32, uint16 };

/// "uint16"
std::string_view to_string(DType dtype);
/// Bytes of one token.
std::int64_t item_size(DType dtype);
/// Storage type for a vocabulary: uint16 below 65,500 tokens, else int32.
DType optimal_dtype(std::int64_t vocabulary);

/// Consecutive sequences or documents: begin, ..., end - 1.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

class IndexedDataset {
 public:
  /// Errors: data if a file is missing or empty; protocol if it is damaged, of another version or multimodal, or if the
  /// two do not match.
  static Result<IndexedDataset> open(const std::filesystem::path& prefix);

  const std::filesystem::path& prefix() const { return prefix_; }
  DType dtype() const { return dtype_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return document_entries_ - 1; }
  bool has_prompts() const { return prompts_.has_value(); }
  /// Tokens at the front of a sequence that belong to its prompt. Errors: protocol if the file of prompts is damaged.
  Result<std::int64_t> prompt_length(std::int64_t sequence) const;
  /// Tokens of all sequences.
  std::int64_t tokens() const { return bin_.size() / item_size(dtype_); }

  /// Tokens of consecutive sequences, computed from the places of the first and the last.
  Result<std::int64_t> tokens(const IndexRange& range) const;

  /// Tokens of a sequence.
  Result<std::int64_t> length(std::int64_t sequence) const;
  /// Lengths of consecutive sequences, for the samplers. Costs a pass over the range.
  Result<std::vector<std::int32_t>> lengths(const IndexRange& range) const;
  /// The sequences of a document.
  Result<IndexRange> document(std::int64_t document) const;
  /// The document of a sequence. Costs a search.
  Result<std::int64_t> document_of(std::int64_t sequence) const;
  /// Copies the tokens offset, ..., offset + length - 1 of a sequence; to its end without a length.
  /// Errors: config if the tokens are floating-point numbers.
  Result<std::vector<std::int64_t>> get(std::int64_t sequence, std::int64_t offset = 0,
                                        std::optional<std::int64_t> length = {}) const;
  /// Returns the same tokens as bytes of the file, of any type and alignment. They live as long as the dataset.
  Result<std::span<const std::byte>> bytes(std::int64_t sequence, std::int64_t offset = 0,
                                           std::optional<std::int64_t> length = {}) const;
  /// Reads the whole index and checks that every sequence begins at the end of the one before it, and that the
  /// documents partition the sequences. Errors: protocol, with the first wrong place.
  Result<void> check() const;

 private:
  IndexedDataset(std::filesystem::path prefix, MappedFile idx, MappedFile bin)
      : prefix_(std::move(prefix)), idx_(std::move(idx)), bin_(std::move(bin)) {}
  Result<void> read_header();
  Result<void> open_prompts();
  tl::unexpected<Error> damaged(std::string message) const;
  Result<void> has_sequence(std::int64_t sequence) const;
  std::int64_t length_at(std::int64_t sequence) const;
  std::int64_t pointer_at(std::int64_t sequence) const;
  std::int64_t document_at(std::int64_t entry) const;

  std::filesystem::path prefix_;
  MappedFile idx_;
  MappedFile bin_;
  std::optional<MappedFile> prompts_;
  DType dtype_ = DType::uint8;
  std::int64_t sequences_ = 0;
  std::int64_t document_entries_ = 0;
};

/// PREFIX.idx and PREFIX.bin.
std::filesystem::path idx_path(const std::filesystem::path& prefix);
std::filesystem::path bin_path(const std::filesystem::path& prefix);
/// PREFIX.prompts, which few datasets have.
std::filesystem::path prompts_path(const std::filesystem::path& prefix);
/// The files of a dataset, without its sidecar. Cost: looks whether there are prompts.
std::vector<std::filesystem::path> files_of_dataset(const std::filesystem::path& prefix);

}  // namespace accrue
