// SPDX-License-Identifier: Apache-2.0
// Writes an indexed dataset. Memory stays small whatever its size: tokens, lengths and documents go to files beside the
// dataset as they come (.NAME.bin.part and others, where PREFIX is FOLDER/NAME), and finalize() makes the index of
// them. The dataset appears with the rename of its index; until then a reader finds none.
//
// An interrupted build goes on: checkpoint() writes down how far the files are good and what the caller gives it to
// find its own place again; resume() cuts the files there and hands it back. Without a checkpoint a build begins again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "accrue/run/indexed_dataset.h"

namespace accrue {

class IndexedDatasetBuilder {
 public:
  /// Begins, and drops what an interrupted build of the same prefix left.
  /// Errors: config where the dataset exists or another process builds it; disk.
  static Result<IndexedDatasetBuilder> create(const std::filesystem::path& prefix, DType dtype);
  /// Goes on from the last checkpoint(). Errors: as create(), and protocol where what it left is damaged.
  static Result<IndexedDatasetBuilder> resume(const std::filesystem::path& prefix);
  /// An interrupted build of this prefix left a checkpoint.
  static bool interrupted(const std::filesystem::path& prefix);

  IndexedDatasetBuilder(IndexedDatasetBuilder&&) noexcept;
  IndexedDatasetBuilder& operator=(IndexedDatasetBuilder&&) noexcept;
  ~IndexedDatasetBuilder();

  /// Appends to the open sequence. Errors: data for a token that the dtype cannot hold, or for a sequence of more than
  /// 2,147,483,647 tokens; config where the dtype is a floating-point type; disk.
  Result<void> append(std::span<const std::int64_t> tokens);
  /// The same for any dtype: tokens as they lie in the file.
  Result<void> append_bytes(std::span<const std::byte> tokens);
  /// Ends the open sequence, which may be empty.
  Result<void> end_sequence();
  /// append() and end_sequence().
  Result<void> add_item(std::span<const std::int64_t> tokens);
  /// Ends the document of the sequences since the last one. Throws std::logic_error within a sequence.
  Result<void> end_document();
  /// Appends another dataset with its documents. Errors: config for another dtype, and what open() and check() say.
  /// Throws std::logic_error within a document.
  Result<void> add_index(const std::filesystem::path& prefix);

  /// `place` is the caller's own, and comes back as place() after resume().
  Result<void> checkpoint(const std::string& place);
  const std::string& place() const;
  /// Makes the index and gives both files their names; after an error neither has one. Errors: data where there are no
  /// tokens; disk. Throws std::logic_error within a document.
  Result<void> finalize();
  /// Gives the build up: what it has written is removed.
  void discard() &&;

  DType dtype() const;
  std::int64_t tokens() const;
  std::int64_t sequences() const;
  std::int64_t documents() const;
  /// Tokens of the open sequence so far.
  std::int64_t open_tokens() const;

 private:
  struct State;
  explicit IndexedDatasetBuilder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace accrue
