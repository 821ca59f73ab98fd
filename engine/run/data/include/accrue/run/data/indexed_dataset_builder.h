// SPDX-License-Identifier: Apache-2.0
// Writes an indexed dataset. Memory use is small for any size: tokens, lengths and documents go to temporary files
// beside the dataset (.NAME.bin.part and others for PREFIX = FOLDER/NAME), and finalize() makes the index of them. The
// dataset appears when its index is renamed; until then a reader finds none.
//
// An interrupted build can continue. checkpoint() records the valid lengths of the files and the caller's own place;
// resume() truncates the files there and returns the place. Without a checkpoint a build starts over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "accrue/run/data/indexed_dataset.h"

namespace accrue {

class IndexedDatasetBuilder {
 public:
  /// Begins a build, and drops the files of an interrupted build of the same prefix.
  /// Errors: config if the dataset exists or another process builds it; disk.
  static Result<IndexedDatasetBuilder> create(const std::filesystem::path& prefix, DType dtype);
  /// Continues from the last checkpoint(). Errors: as create(), and protocol if its files are damaged.
  static Result<IndexedDatasetBuilder> resume(const std::filesystem::path& prefix);
  /// Whether an interrupted build of this prefix left a checkpoint.
  static bool interrupted(const std::filesystem::path& prefix);

  IndexedDatasetBuilder(IndexedDatasetBuilder&&) noexcept;
  IndexedDatasetBuilder& operator=(IndexedDatasetBuilder&&) noexcept;
  ~IndexedDatasetBuilder();

  /// Appends to the open sequence. Errors: data for a token that the dtype cannot hold, or for a sequence of more than
  /// 2,147,483,647 tokens; config if the dtype is a floating-point type; disk.
  Result<void> append(std::span<const std::int64_t> tokens);
  /// Does the same for any dtype, with tokens as stored in the file.
  Result<void> append_bytes(std::span<const std::byte> tokens);
  /// Declares the tokens of the open sequence so far its prompt. The dataset then has PREFIX.prompts.
  void end_prompt();
  /// Ends the open sequence, which may be empty.
  Result<void> end_sequence();
  /// Does append() and end_sequence().
  Result<void> add_item(std::span<const std::int64_t> tokens);
  /// Ends the document of the sequences since the last one. Throws std::logic_error within a sequence.
  Result<void> end_document();
  /// Appends another dataset with its documents. Errors: config for another dtype, and those of open() and check().
  /// Throws std::logic_error within a document.
  Result<void> add_index(const std::filesystem::path& prefix);

  /// `place` belongs to the caller; place() returns it after resume().
  Result<void> checkpoint(const std::string& place);
  const std::string& place() const;
  /// Makes the index and gives the files their names; after an error none has one. Errors: data if there are no
  /// tokens; disk. Throws std::logic_error within a document.
  Result<void> finalize();
  /// Abandons the build and removes its files.
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
