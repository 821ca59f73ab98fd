// SPDX-License-Identifier: Apache-2.0
// Indexed datasets: token sequences in PREFIX.bin and where each lies in PREFIX.idx, the format of Megatron-LM. A
// document is one or more consecutive sequences. Both files are mapped: opening costs the same for any size, and ranks
// of one host share the page cache.
//
// Opening checks what can be checked at once: the header, both sizes, and the last sequence. Every other number of the
// index is checked against the files before it is used, so a damaged pair is refused or read within its bounds.
// Multimodal indexes, which end with a mode for each sequence, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "accrue/run/mapped_file.h"
#include "accrue/run/result.h"

namespace accrue {

/// The codes of the format.
enum class DType : std::uint8_t { uint8 = 1, int8, int16, int32, int64, float64, float32, uint16 };

/// "uint16"
std::string_view to_string(DType dtype);
/// Bytes of one token.
std::int64_t item_size(DType dtype);
/// What the tokens of a vocabulary are stored in: uint16 below 65,500 tokens, else int32.
DType optimal_dtype(std::int64_t vocabulary);

/// Consecutive sequences, or documents: begin, ..., end - 1.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

class IndexedDataset {
 public:
  /// Errors: data where a file is missing or empty; protocol where it is damaged, of another version or multimodal, or
  /// where the two do not belong together.
  static Result<IndexedDataset> open(const std::filesystem::path& prefix);

  const std::filesystem::path& prefix() const { return prefix_; }
  DType dtype() const { return dtype_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return document_entries_ - 1; }
  /// Of all sequences.
  std::int64_t tokens() const { return bin_.size() / item_size(dtype_); }

  /// Of consecutive sequences, from where the first and the last of them lie.
  Result<std::int64_t> tokens(const IndexRange& range) const;

  /// Tokens of a sequence.
  Result<std::int64_t> length(std::int64_t sequence) const;
  /// Those of consecutive sequences, as the samplers need them; costs a pass over the range.
  Result<std::vector<std::int32_t>> lengths(const IndexRange& range) const;
  /// The sequences of a document.
  Result<IndexRange> document(std::int64_t document) const;
  /// The document of a sequence; costs a search.
  Result<std::int64_t> document_of(std::int64_t sequence) const;
  /// Tokens offset, ..., offset + length - 1 of a sequence, to its end without a length: a copy.
  /// Errors: config where the tokens are floating-point numbers.
  Result<std::vector<std::int64_t>> get(std::int64_t sequence, std::int64_t offset = 0,
                                        std::optional<std::int64_t> length = {}) const;
  /// The same as bytes of the file, of any type and alignment; they live as long as the dataset.
  Result<std::span<const std::byte>> bytes(std::int64_t sequence, std::int64_t offset = 0,
                                           std::optional<std::int64_t> length = {}) const;
  /// Reads the whole index: every sequence begins where the one before it ends, and every document holds what lies
  /// between its neighbours. Errors: protocol, with the first place that does not.
  Result<void> check() const;

 private:
  IndexedDataset(std::filesystem::path prefix, MappedFile idx, MappedFile bin)
      : prefix_(std::move(prefix)), idx_(std::move(idx)), bin_(std::move(bin)) {}
  Result<void> read_header();
  tl::unexpected<Error> damaged(std::string message) const;
  Result<void> has_sequence(std::int64_t sequence) const;
  std::int64_t length_at(std::int64_t sequence) const;
  std::int64_t pointer_at(std::int64_t sequence) const;
  std::int64_t document_at(std::int64_t entry) const;

  std::filesystem::path prefix_;
  MappedFile idx_;
  MappedFile bin_;
  DType dtype_ = DType::uint8;
  std::int64_t sequences_ = 0;
  std::int64_t document_entries_ = 0;
};

/// PREFIX.idx and PREFIX.bin.
std::filesystem::path idx_path(const std::filesystem::path& prefix);
std::filesystem::path bin_path(const std::filesystem::path& prefix);

}  // namespace accrue
